# With CHIMERE_STATIC=FOLDER the program needs no shared library but those of glibc: Debian's static archives are linked,
# and from FOLDER those of which Debian has none that stands alone (scripts/static_libraries.sh makes it). Headers and
# flags stay what they are, so that objects of other builds serve here, too (ccache). ./package builds so; for work on
# the program the shared libraries link faster.

set(CHIMERE_STATIC "" CACHE PATH "Folder of static libraries; empty: shared ones")

# The archive of a library, or an error.
function(chimere_archive variable name)
  find_library(CHIMERE_ARCHIVE_${name} lib${name}.a PATHS ${CHIMERE_STATIC}/lib NO_DEFAULT_PATH)
  find_library(CHIMERE_ARCHIVE_${name} lib${name}.a REQUIRED)
  set(${variable} ${CHIMERE_ARCHIVE_${name}} PARENT_SCOPE)
endfunction()

# chimere_relocate(target archive...): the first archive in place of the target's shared library, with what it needs.
function(chimere_relocate target name)
  chimere_archive(own ${name})
  set_property(TARGET ${target} PROPERTY IMPORTED_LOCATION ${own})
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration ${configurations})
    set_property(TARGET ${target} PROPERTY IMPORTED_LOCATION_${configuration} ${own})
  endforeach()
  foreach(needed ${ARGN})
    if(NOT TARGET ${needed})
      chimere_archive(needed ${needed})
    endif()
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${needed})
  endforeach()
endfunction()

# Once all libraries were found and before the first layer links one.
macro(chimere_make_static)
  if(CHIMERE_STATIC)
    chimere_relocate(OpenSSL::Crypto crypto)
    chimere_relocate(OpenSSL::SSL ssl)
    chimere_relocate(CURL::libcurl curl OpenSSL::SSL OpenSSL::Crypto z)
    chimere_relocate(LibXml2::LibXml2 xml2)
    chimere_relocate(SQLite::SQLite3 sqlite3)
    chimere_relocate(yaml-cpp yaml-cpp)
    chimere_relocate(fmt::fmt fmt)
    chimere_relocate(spdlog::spdlog spdlog)
    foreach(library UTF8PROC:utf8proc IDN2:idn2:unistring EDIT:edit:bsd:md:tinfo QRENCODE:qrencode)
      string(REPLACE ":" ";" parts ${library})
      list(POP_FRONT parts name)
      set(${name}_LIBRARY "")
      foreach(part ${parts})
        chimere_archive(archive ${part})
        list(APPEND ${name}_LIBRARY ${archive})
      endforeach()
    endforeach()
    add_link_options(-static-libstdc++ -static-libgcc)
  endif()
endmacro()
