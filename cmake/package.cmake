# What `cmake --install` puts where, and the .deb that CPack makes of it. ./package runs both and tries what they made.
include(GNUInstallDirs)

install(TARGETS chimere RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_SOURCE_DIR}/assets/chimere-nano.gguf ${CMAKE_SOURCE_DIR}/assets/chimere-nano.prm.gguf
              ${CMAKE_SOURCE_DIR}/assets/chimere-embed.gguf ${CMAKE_SOURCE_DIR}/assets/chimere-matcher.gguf
        DESTINATION ${CMAKE_INSTALL_DATADIR}/chimere)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/assets/engram ${CMAKE_SOURCE_DIR}/assets/improve ${CMAKE_SOURCE_DIR}/assets/routes
        DESTINATION ${CMAKE_INSTALL_DATADIR}/chimere)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES ${CMAKE_SOURCE_DIR}/docs/deploy.md ${CMAKE_SOURCE_DIR}/SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/deploy/kubernetes ${CMAKE_SOURCE_DIR}/deploy/haproxy
                  ${CMAKE_SOURCE_DIR}/deploy/monitoring DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Written by the program itself, from its own options, when it is installed; by way of an emulator where it is for another
# machine.
set(generated ${CMAKE_BINARY_DIR}/generated)
string(REPLACE ";" " " emulator "${CMAKE_CROSSCOMPILING_EMULATOR}")
file(MAKE_DIRECTORY ${generated})
foreach(text "chimere.1:manual" "chimere.bash:completion bash" "_chimere:completion zsh" "chimere.fish:completion fish"
             "chimere.yaml:config example")
  string(REGEX MATCH "^([^:]+):(.*)$" matched ${text})
  install(CODE "execute_process(COMMAND ${emulator} ${CMAKE_BINARY_DIR}/chimere ${CMAKE_MATCH_2} OUTPUT_FILE ${generated}/${CMAKE_MATCH_1}
                COMMAND_ERROR_IS_FATAL ANY)" ALL_COMPONENTS)
endforeach()
install(FILES ${generated}/chimere.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${generated}/chimere.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME chimere)
install(FILES ${generated}/_chimere DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${generated}/chimere.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# The service, for packages that belong to a system.
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/chimere.service DESTINATION lib/systemd/system COMPONENT service)
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/chimere.sysusers DESTINATION lib/sysusers.d RENAME chimere.conf
        COMPONENT service)
install(FILES ${generated}/chimere.yaml DESTINATION /etc/chimere PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
        COMPONENT service)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME chimere)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Chimère <chimere@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "server for hybrid language models, with a model in the box")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL OFF)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64" AND CMAKE_CROSSCOMPILING)
  # dpkg-shlibdeps would ask this machine's packages, which are those of another. ./package checks that this is enough.
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.35)")
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, tzdata, systemd")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "poppler-utils, bubblewrap, python3, libpq5")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Runs hybrid language models (recurrent layers, attention, mixture of experts)
from GGUF files on the CPU, serves the APIs of OpenAI, Anthropic, Ollama and
llama.cpp and a web page. A small model is in the package.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    "${CMAKE_SOURCE_DIR}/deploy/package/conffiles;${CMAKE_SOURCE_DIR}/deploy/package/postinst;${CMAKE_SOURCE_DIR}/deploy/package/prerm;${CMAKE_SOURCE_DIR}/deploy/package/postrm")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
