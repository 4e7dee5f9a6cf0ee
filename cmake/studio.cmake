# The web page inside the program. Sets CHIMERE_STUDIO_SOURCE: a C++ file with its files, or with none.
#
# AUTO builds it where Node.js 18 or later and npm are, and leaves it out with a word where they are not; ON fails there.

set(CHIMERE_STUDIO AUTO CACHE STRING "The web page inside the program: ON, OFF or AUTO")
set_property(CACHE CHIMERE_STUDIO PROPERTY STRINGS AUTO ON OFF)

set(CHIMERE_STUDIO_SOURCE ${CMAKE_BINARY_DIR}/studio/embedded_page.cpp)
set(studio_missing "")
if(NOT CHIMERE_STUDIO STREQUAL "OFF")
  find_program(CHIMERE_NODE node)
  find_program(CHIMERE_NPM npm)
  if(NOT CHIMERE_NODE OR NOT CHIMERE_NPM)
    set(studio_missing "Node.js and npm were not found")
  else()
    execute_process(COMMAND ${CHIMERE_NODE} -p "process.versions.node.split('.')[0]"
                    OUTPUT_VARIABLE node_version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT node_version GREATER_EQUAL 18)
      set(studio_missing "Node.js 18 or later is needed, found ${node_version}")
    endif()
  endif()
  if(studio_missing AND CHIMERE_STUDIO STREQUAL "ON")
    message(FATAL_ERROR "The web page cannot be built: ${studio_missing}")
  endif()
endif()

if(CHIMERE_STUDIO STREQUAL "OFF" OR studio_missing)
  if(studio_missing)
    message(WARNING "The program is built without its web page: ${studio_missing}. It serves the API alone.")
  endif()
  file(CONFIGURE OUTPUT ${CHIMERE_STUDIO_SOURCE} CONTENT [[#include "server/admin/page.h"

namespace chimere::server {

std::span<const PageFile> embedded_page() { return {}; }

}  // namespace chimere::server
]] @ONLY)
else()
  set(studio ${CMAKE_SOURCE_DIR}/studio)
  file(GLOB_RECURSE studio_files CONFIGURE_DEPENDS ${studio}/src/* ${studio}/public/*)
  set(studio_optional "")
  if(CHIMERE_STUDIO STREQUAL "AUTO")
    set(studio_optional optional)
  endif()
  add_custom_command(
    OUTPUT ${CHIMERE_STUDIO_SOURCE}
    COMMAND ${studio}/build.sh ${CMAKE_BINARY_DIR}/studio ${CHIMERE_STUDIO_SOURCE} ${studio_optional}
    DEPENDS ${studio_files} ${studio}/build.sh ${studio}/embed.mjs ${studio}/offline.mjs ${studio}/worker.js
            ${studio}/index.html ${studio}/package.json
            ${studio}/package-lock.json ${studio}/vite.config.ts ${CMAKE_SOURCE_DIR}/docs/choosing-a-model.md
    COMMENT "Building the web page"
    VERBATIM)
endif()
