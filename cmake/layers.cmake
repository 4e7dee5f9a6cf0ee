# One static library per folder of src/, in the order of the request's walk: a folder links only what stands above it.
# A new file needs no edit here: `foo.cpp` joins the folder's library, `foo_test.cpp` its test program.

add_custom_target(checks)  # everything ctest runs, and nothing else

# All suites run under sanitizers, and those of arithmetic, up to whole models, in the Release build, too, as users get it.
# The others would find nothing more there, nor do kernels in the emulator, which no user has. In the Release build these
# are still targets, for whoever works on them, but no part of `all`.
# chimere_suite(name [EVERYWHERE] [PARTS number])    EVERYWHERE: in the Release build, too
# PARTS: as so many tests, for the longest suites, so that none runs on alone when all others have ended.
function(chimere_suite name)
  cmake_parse_arguments(S "EVERYWHERE" "PARTS" "" ${ARGN})
  if(NOT CHIMERE_SANITIZE AND NOT S_EVERYWHERE)
    set_target_properties(${name}_test PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  add_dependencies(checks ${name}_test)
  if(NOT S_PARTS)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS "unit" TIMEOUT 1800)
    return()
  endif()
  foreach(part RANGE 1 ${S_PARTS})
    math(EXPR index "${part} - 1")
    add_test(NAME ${name}_${part} COMMAND ${name}_test)
    set_tests_properties(${name}_${part} PROPERTIES LABELS "unit" TIMEOUT 1800
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${S_PARTS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# chimere_layer(name [FUZZED] [COMPUTES] [ARITHMETIC] [DEPS folder...] [LIBS target...] [TEST_LIBS target...])
# FUZZED: a fuzzer reads the folder's coverage. COMPUTES: long loops; optimised in sanitized builds, too. ARITHMETIC: its
# suite runs in the Release build, too, and it is what the few suites under TSan compute with.
function(chimere_layer name)
  cmake_parse_arguments(L "FUZZED;COMPUTES;ARITHMETIC" "" "DEPS;LIBS;TEST_LIBS" ${ARGN})
  string(REPLACE "/" "_" target ${name})
  set(folder ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/ops/*.cpp ${folder}/isa/*.cpp ${folder}/platform/*.cpp
       ${folder}/dialects/*.cpp ${folder}/http/*.cpp ${folder}/protocols/*.cpp ${folder}/protocols/shared/*.cpp
       ${folder}/admin/*.cpp ${folder}/batch/*.cpp ${folder}/learning/*.cpp ${folder}/shelf/*.cpp ${folder}/odo/*.cpp
       ${folder}/routing/*.cpp ${folder}/tracing/*.cpp)
  set(tests ${sources})
  if(WIN32)
    # platform/windows/ has its own of each file of platform/, with headers of the system that name things as they like.
    list(FILTER sources EXCLUDE REGEX "/platform/[^/]*\\.cpp$")
    file(GLOB windows_sources CONFIGURE_DEPENDS ${folder}/platform/windows/*.cpp)
    set_source_files_properties(${windows_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    list(APPEND sources ${windows_sources})
    # What Windows has none of.
    list(FILTER tests EXCLUDE REGEX "/platform/(child_process|service_manager|stand_still)_test\\.cpp$")
  endif()
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  if(NOT sources)
    return()
  endif()
  add_library(chimere_${target} STATIC ${sources})
  target_include_directories(chimere_${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  if(L_COMPUTES)
    if(L_ARITHMETIC OR NOT CHIMERE_SANITIZE STREQUAL "thread")
      chimere_optimise_sanitized(chimere_${target})
    endif()
    # Their time goes into code, not into headers, and their kernels name things alike.
    set_target_properties(chimere_${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
  endif()
  if(L_FUZZED AND CHIMERE_FUZZERS)
    target_compile_options(chimere_${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  foreach(dep ${L_DEPS})
    string(REPLACE "/" "_" dep ${dep})
    if(TARGET chimere_${dep})
      target_link_libraries(chimere_${target} PUBLIC chimere_${dep})
    endif()
  endforeach()
  target_link_libraries(chimere_${target} PUBLIC ${L_LIBS} Threads::Threads)
  if(CHIMERE_TESTS AND tests)
    # Tests of ops are small worlds of their own (Shape, Fixture, run): each stays a unit of its own.
    set(op_tests ${tests})
    list(FILTER op_tests INCLUDE REGEX "/ops/")
    set_source_files_properties(${op_tests} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    add_executable(${target}_test ${tests})
    chimere_test_program(${target}_test)
    if(L_COMPUTES)
      chimere_optimise_sanitized(${target}_test)
    endif()
    target_link_libraries(${target}_test PRIVATE chimere_${target} ${L_TEST_LIBS} GTest::gtest_main)
    target_compile_definitions(${target}_test PRIVATE CHIMERE_TESTS_DIR="${CMAKE_SOURCE_DIR}/tests")
    set(everywhere "")
    if(L_ARITHMETIC)
      set(everywhere EVERYWHERE)
    endif()
    chimere_suite(${target} ${everywhere})
  endif()
endfunction()

# The only files with instruction-set flags; everything else runs on any x86-64 or arm64. Those of the other architecture
# are empty.
set(isas "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(isas avx2 avx512 avx512vnni)
  set(avx2 -mavx2 -mfma -mf16c -mbmi2)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 takes the undefined pass-through operand inside its own AVX-512 headers for a mistake of ours.
    list(APPEND avx512 -Wno-maybe-uninitialized -Wno-uninitialized)
  endif()
  set(avx512vnni ${avx512} -mavx512vnni)
  if(CHIMERE_SANITIZE MATCHES "undefined")
    # Address checks stay. The others make these heavily inlined files cost minutes each and have nothing to find there:
    # intrinsics are defined for every value.
    foreach(isa ${isas})
      list(APPEND ${isa} -fno-sanitize=undefined)
    endforeach()
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(isas neon dotprod i8mm)
  set(neon -march=armv8-a)
  set(dotprod -march=armv8.2-a+dotprod)
  set(i8mm -march=armv8.2-a+dotprod+i8mm)
endif()
foreach(isa ${isas})
  file(GLOB isa_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cpu/isa/*_${isa}.cpp
       ${CMAKE_SOURCE_DIR}/src/retrieval/isa/*_${isa}.cpp ${CMAKE_SOURCE_DIR}/src/quantizer/isa/*_${isa}.cpp)
  set_source_files_properties(${isa_sources} PROPERTIES COMPILE_OPTIONS "${${isa}}")
endforeach()

chimere_layer(base)
if(WIN32)
  # In every program: what the manifest says holds for the process.
  enable_language(RC)
  target_link_libraries(chimere_base PUBLIC synchronization)  # WaitOnAddress
  target_sources(chimere_base INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_SOURCE_DIR}/cmake/windows/chimere.rc>)
endif()
chimere_layer(tensor COMPUTES ARITHMETIC DEPS base)
chimere_layer(gguf FUZZED COMPUTES DEPS tensor base)
chimere_layer(sampling COMPUTES ARITHMETIC DEPS base)
chimere_layer(backend DEPS sampling gguf tensor base)
chimere_layer(backend/reference COMPUTES ARITHMETIC DEPS backend tensor base)
chimere_layer(backend/cpu COMPUTES ARITHMETIC DEPS backend backend/reference tensor base)
include(cmake/cuda.cmake)
chimere_layer(cache FUZZED DEPS backend gguf tensor base)
chimere_layer(models ARITHMETIC DEPS cache backend/cuda backend/cpu backend/reference backend gguf tensor base)
include(cmake/parity.cmake)
chimere_layer(engram FUZZED DEPS sampling base)
chimere_layer(speculative DEPS engram base)
chimere_layer(engine DEPS speculative sampling models cache backend base)
chimere_layer(improve/mezo COMPUTES DEPS models cache backend gguf tensor base)

file(GLOB core_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/apps/core/*.cpp)
add_executable(chimere-core ${core_sources})
target_link_libraries(chimere-core PRIVATE chimere_improve_mezo chimere_engine)

# Built on demand: ninja -C build/release matmul_bench
add_executable(matmul_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/kernels/matmul_bench.cpp)
target_link_libraries(matmul_bench PRIVATE chimere_backend_cpu)
add_executable(engram_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/engram/engram_bench.cpp)
target_link_libraries(engram_bench PRIVATE chimere_engram)

if(CHIMERE_CORE_ONLY)
  return()
endif()

# All of them before the first layer that links one.
include(cmake/static.cmake)
find_package(nlohmann_json REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CURL 7.88 REQUIRED)
find_package(LibXml2 REQUIRED)
find_library(IDN2_LIBRARY idn2 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(SQLite3 REQUIRED)
find_library(EDIT_LIBRARY edit REQUIRED)
find_library(QRENCODE_LIBRARY qrencode REQUIRED)
chimere_make_static()

chimere_layer(text FUZZED DEPS base LIBS nlohmann_json::nlohmann_json yaml-cpp TEST_LIBS ${UTF8PROC_LIBRARY})
chimere_layer(web FUZZED DEPS text base LIBS CURL::libcurl LibXml2::LibXml2 ${IDN2_LIBRARY}
                  nlohmann_json::nlohmann_json TEST_LIBS OpenSSL::SSL OpenSSL::Crypto)
add_executable(web_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/web/web_bench.cpp)
target_link_libraries(web_bench PRIVATE chimere_web)
chimere_layer(tools FUZZED DEPS web text base LIBS nlohmann_json::nlohmann_json)
chimere_layer(documents FUZZED DEPS web text base)
chimere_layer(tokenizer FUZZED COMPUTES DEPS gguf text base LIBS ${UTF8PROC_LIBRARY} TEST_LIBS nlohmann_json::nlohmann_json)
chimere_layer(jinja FUZZED COMPUTES DEPS text base LIBS ${UTF8PROC_LIBRARY})
chimere_layer(grammar FUZZED COMPUTES DEPS tokenizer sampling text base)
chimere_layer(chat FUZZED DEPS grammar jinja tokenizer text base)
add_executable(grammar_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/grammar/grammar_bench.cpp)
target_link_libraries(grammar_bench PRIVATE chimere_grammar)

chimere_layer(convert FUZZED DEPS models tokenizer gguf tensor text base)
chimere_layer(quantizer FUZZED COMPUTES ARITHMETIC DEPS engine models grammar tokenizer gguf tensor text base)
add_executable(encode_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/quantize/encode_bench.cpp)
target_link_libraries(encode_bench PRIVATE chimere_quantizer chimere_gguf)

chimere_layer(improve/examples FUZZED DEPS improve/mezo chat tokenizer models text base)

chimere_layer(store FUZZED DEPS chat text base LIBS SQLite::SQLite3)
chimere_layer(retrieval FUZZED DEPS store documents engram tokenizer gguf tensor text base LIBS ${UTF8PROC_LIBRARY})
add_executable(passages_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/engram/passages_bench.cpp)
target_link_libraries(passages_bench PRIVATE chimere_retrieval)
add_executable(notes_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/engram/notes_bench.cpp)
target_link_libraries(notes_bench PRIVATE chimere_retrieval)

add_executable(search_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/retrieval/search_bench.cpp)
target_link_libraries(search_bench PRIVATE chimere_retrieval)

add_executable(routing_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/experts/routing_bench.cpp)
target_link_libraries(routing_bench PRIVATE chimere_engine chimere_tokenizer)

chimere_layer(orchestrator DEPS grammar chat retrieval engram tokenizer engine text base)
add_executable(quality_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/retrieval/quality_bench.cpp)
target_link_libraries(quality_bench PRIVATE chimere_orchestrator)
chimere_layer(odo FUZZED DEPS orchestrator store tools retrieval documents web grammar chat tokenizer engine text base)
chimere_layer(improve FUZZED DEPS improve/examples improve/mezo odo orchestrator tools store engram engine tokenizer text base LIBS OpenSSL::Crypto)
include(cmake/studio.cmake)
chimere_layer(server FUZZED DEPS improve odo orchestrator store text base LIBS Boost::headers spdlog::spdlog OpenSSL::SSL
                                                 OpenSSL::Crypto)
target_sources(chimere_server PRIVATE ${CHIMERE_STUDIO_SOURCE})

# What the program does at a terminal, as a library of its own, so that it can be tested.
file(GLOB terminal_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/apps/chimere/terminal/*.cpp)
set(terminal_tests ${terminal_sources})
list(FILTER terminal_sources EXCLUDE REGEX "_test\\.cpp$")
list(FILTER terminal_tests INCLUDE REGEX "_test\\.cpp$")
add_library(chimere_terminal STATIC ${terminal_sources})
target_include_directories(chimere_terminal PUBLIC ${CMAKE_SOURCE_DIR}/apps/chimere)
target_link_libraries(chimere_terminal PUBLIC chimere_tokenizer chimere_base ${EDIT_LIBRARY} ${QRENCODE_LIBRARY} yaml-cpp nlohmann_json::nlohmann_json)
if(CHIMERE_TESTS)
  add_executable(terminal_test ${terminal_tests})
  target_link_libraries(terminal_test PRIVATE chimere_terminal GTest::gtest_main)
  chimere_suite(terminal)
endif()

file(GLOB app_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/apps/chimere/*.cpp)
add_executable(chimere ${app_sources})
target_compile_definitions(chimere PRIVATE CHIMERE_VERSION="${PROJECT_VERSION}")
# The commit that `chimere --version` tells, looked at in every build and written where it changed.
set(CHIMERE_COMMIT "" CACHE STRING "Commit that --version tells; empty: that of the clone")
add_custom_target(chimere_commit COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DCOMMIT=${CHIMERE_COMMIT}
                  -DOUT=${CMAKE_BINARY_DIR}/commit.cpp -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake
                  BYPRODUCTS ${CMAKE_BINARY_DIR}/commit.cpp VERBATIM)
set_source_files_properties(${CMAKE_BINARY_DIR}/commit.cpp PROPERTIES GENERATED ON SKIP_UNITY_BUILD_INCLUSION ON)
target_sources(chimere PRIVATE ${CMAKE_BINARY_DIR}/commit.cpp)
add_dependencies(chimere chimere_commit)
if(CHIMERE_STATIC)
  target_sources(chimere PRIVATE ${CMAKE_SOURCE_DIR}/apps/chimere/static/arc4random.cpp)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/apps/chimere/static/arc4random.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endif()
target_link_libraries(chimere PRIVATE chimere_server chimere_improve chimere_improve_examples chimere_odo chimere_tools chimere_quantizer chimere_orchestrator chimere_retrieval chimere_engine chimere_convert
                                      chimere_chat
                                      chimere_terminal chimere_tokenizer CLI11::CLI11 nlohmann_json::nlohmann_json)

# Built on demand: ninja -C build/release serve_bench
add_executable(serve_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/serve/serve_bench.cpp)
target_link_libraries(serve_bench PRIVATE chimere_orchestrator chimere_engine)

include(cmake/package.cmake)

if(CHIMERE_TESTS)
  # Lists and calls the tools of a server: what tests/api runs against the reference servers.
  add_executable(mcp_probe ${CMAKE_SOURCE_DIR}/tests/mcp/mcp_probe.cpp)
  target_link_libraries(mcp_probe PRIVATE chimere_tools)
  add_test(NAME commands COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/commands.sh $<TARGET_FILE:chimere> ${CMAKE_SOURCE_DIR}/tests)
  # Of the program itself, so only where it is built: the sanitized runs build `checks` alone.
  set_tests_properties(commands PROPERTIES LABELS "program" TIMEOUT 300)
  add_test(NAME terminal_chat COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/chat.sh $<TARGET_FILE:chimere> ${CMAKE_SOURCE_DIR}/tests)
  add_test(NAME hostile COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/hostile.sh $<TARGET_FILE:chimere> ${CMAKE_SOURCE_DIR}/tests)
  add_test(NAME terminal_top COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/top.sh $<TARGET_FILE:chimere> ${CMAKE_SOURCE_DIR}/tests)
  set_tests_properties(terminal_chat terminal_top hostile PROPERTIES LABELS "program" TIMEOUT 300)
  add_test(NAME configuration COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/config.sh $<TARGET_FILE:chimere> ${CMAKE_SOURCE_DIR}/tests)
  set_tests_properties(configuration PROPERTIES LABELS "program" TIMEOUT 300)
  foreach(part unit cluster monitoring balancer)
    add_test(NAME deployment_${part} COMMAND ${CMAKE_SOURCE_DIR}/tests/deploy/files.sh $<TARGET_FILE:chimere> ${CMAKE_SOURCE_DIR} ${part})
    set_tests_properties(deployment_${part} PROPERTIES LABELS "program" TIMEOUT 300 SKIP_RETURN_CODE 77)
  endforeach()
  add_test(NAME replicas COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/replicas.sh $<TARGET_FILE:chimere> ${CMAKE_SOURCE_DIR}/tests)
  set_tests_properties(replicas PROPERTIES LABELS "program" TIMEOUT 600 SKIP_RETURN_CODE 77)
  add_test(NAME real_models COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/real_models.sh $<TARGET_FILE:chimere> ${CMAKE_SOURCE_DIR}/tests)
  set_tests_properties(real_models PROPERTIES LABELS "program" TIMEOUT 300)
  # A slice of what docs/speculation.md says how to run in full.
  add_test(NAME speculation_matrix COMMAND ${CMAKE_SOURCE_DIR}/tools/check_speculation.py --chimere $<TARGET_FILE:chimere>
    --prompts 4 --tokens 24 --modes auto,always ${CMAKE_SOURCE_DIR}/assets/chimere-nano.gguf)
  set_tests_properties(speculation_matrix PROPERTIES LABELS "program" TIMEOUT 300)
  add_test(NAME documented_commands COMMAND ${CMAKE_SOURCE_DIR}/tools/check_docs.py --program $<TARGET_FILE:chimere>)
  set_tests_properties(documented_commands PROPERTIES LABELS "program" TIMEOUT 60)
endif()
