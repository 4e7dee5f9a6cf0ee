// cache_folder.h  The prefix cache's place on the disk, and what there is ours.
//
//   FOLDER/.chimere-cache        marker: this folder is a cache of ours
//   FOLDER/KEY/.chimere-cache    marker of a model's folder; KEY: 16 hexadecimal digits
//   FOLDER/KEY/NAME.point, NAME.page (point_file.h), and what a killed process left: NAME.point.tmp-...,
//   NAME.page.tmp-...
//
// Only folders with a marker are ours, and only in folders that we made is a mode set. What is deleted are files with
// names that we give, one by one, in marked folders that are no links; whatever else lies there stays.
//
// Several processes may use one folder. Who clears a model's folder renews its marker, whose second line is a number
// drawn anew: a store that runs compares it before every job (disk_store.h) and forgets what is no longer there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace chimere {

// What lies on the disk.
struct CacheUse {
  uint64_t bytes = 0;
  uint64_t entries = 0;  // kept positions
};

// The folder to keep things in: `wanted` where it is new, empty or ours, else a folder of our own inside of it.
Result<std::string> claim_cache_folder(const std::string& wanted);
// The same for one that is there; changes nothing. not_found when there is none.
Result<std::string> find_cache_folder(const std::string& wanted);

// A model's folder inside a claimed one. Refused when something of that name is there and is not ours.
Result<std::string> claim_model_folder(const std::string& folder, uint64_t key);
// All models' folders inside a claimed one.
std::vector<std::string> model_folders(const std::string& folder);
// What changes when a model's folder is cleared; empty when it is not there or not ours.
std::string clear_mark(const std::string& model_folder);

CacheUse use_of_folder(const std::string& model_folder);
// Removes all kept positions and says so in the marker. Gives what was removed.
CacheUse clear_folder(const std::string& model_folder);

// What the cache may take of the disk when nobody says.
struct DiskQuota {
  uint64_t all_models = 0;
  uint64_t one_model = 0;
};
// free_bytes: of the disk, together with what the cache has of it.
DiskQuota default_quota(uint64_t model_bytes, uint64_t free_bytes);
// Of the disk where the folder is or will be, together with what the cache has of it.
uint64_t free_bytes_for(const std::string& folder);

}  // namespace chimere
