// cache_folder.h  The prefix cache's folder on disk, and how we know which files in it are ours.
//
//   FOLDER/.chimere-cache        marker: this folder is a cache of ours
//   FOLDER/KEY/.chimere-cache    marker of a model's folder; KEY: 16 hexadecimal digits
//   FOLDER/KEY/NAME.point, NAME.page                    the cache itself (point_file.h)
//   FOLDER/KEY/NAME.point.tmp-..., NAME.page.tmp-...    what a killed process left behind
//
// Only folders with a marker are ours, and modes are set only on folders that we created. Files are deleted one by one,
// only if they have names of ours and lie in marked folders that are not symbolic links; everything else stays.
//
// Several processes may use one folder. Clearing a model's folder rewrites its marker, whose second line is a random
// number: a running store compares it before every job (disk_store.h) and forgets what is no longer there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace chimere {

// How much is on disk.
struct CacheUse {
  uint64_t bytes = 0;
  uint64_t entries = 0;  // kept positions
};

// The folder to use: `wanted` if it is new, empty or ours, else a folder of our own inside it.
Result<std::string> claim_cache_folder(const std::string& wanted);
// The same for an existing one; changes nothing. not_found when there is none.
Result<std::string> find_cache_folder(const std::string& wanted);

// A model's folder inside a claimed one. Refused when something of that name is there and is not ours.
Result<std::string> claim_model_folder(const std::string& folder, uint64_t key);
// All models' folders inside a claimed one.
std::vector<std::string> model_folders(const std::string& folder);
// A string that changes when a model's folder is cleared; empty when the folder is missing or not ours.
std::string clear_mark(const std::string& model_folder);

CacheUse use_of_folder(const std::string& model_folder);
// Removes all kept positions and renews the marker. Returns what was removed.
CacheUse clear_folder(const std::string& model_folder);

// How much disk the cache may use by default.
struct DiskQuota {
  uint64_t all_models = 0;
  uint64_t one_model = 0;
};
// free_bytes: free space of the disk, plus what the cache already uses.
DiskQuota default_quota(uint64_t model_bytes, uint64_t free_bytes);
// That figure for the disk on which the folder is or will be.
uint64_t free_bytes_for(const std::string& folder);

}  // namespace chimere
