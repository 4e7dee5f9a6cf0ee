# libFuzzer targets: tests/fuzz/fuzz_NAME.cpp with its seeds in tests/fuzz/corpus/NAME. ctest runs each for a short,
# bounded time on its seeds; a longer hunt is `build/asan/fuzz_NAME FINDINGS tests/fuzz/corpus/NAME`: what it finds
# goes into the first folder, which must not be the seeds.
function(chimere_fuzzer name)
  add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_${name}.cpp)
  target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(fuzz_${name} PRIVATE ${ARGN})
  add_dependencies(checks fuzz_${name})
  add_test(NAME fuzz_${name}
           COMMAND fuzz_${name} -seed=1 -max_total_time=10 -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=4096
                   -artifact_prefix=${CMAKE_BINARY_DIR}/ ${CMAKE_BINARY_DIR}/corpus_${name}
                   ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  # New findings of a run go to the build folder, never into the seeds.
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/corpus_${name})
  set_tests_properties(fuzz_${name} PROPERTIES LABELS "fuzz" TIMEOUT 120)
endfunction()

chimere_fuzzer(gguf chimere_gguf)
chimere_fuzzer(html_text chimere_web)
chimere_fuzzer(robots chimere_web)
chimere_fuzzer(search_answer chimere_web)
chimere_fuzzer(documents chimere_documents)
chimere_fuzzer(tokenizer chimere_tokenizer)
chimere_fuzzer(template chimere_chat)
chimere_fuzzer(engram chimere_engram)
chimere_fuzzer(passages chimere_retrieval)
chimere_fuzzer(matcher chimere_retrieval)
chimere_fuzzer(point_file chimere_cache)
chimere_fuzzer(grammar chimere_grammar)
chimere_fuzzer(checkpoint chimere_convert)
chimere_fuzzer(quantizer chimere_quantizer)
chimere_fuzzer(examples chimere_improve_examples)
chimere_fuzzer(calculator chimere_tools)
chimere_fuzzer(routes chimere_odo)
chimere_fuzzer(mcp chimere_tools)
chimere_fuzzer(http chimere_server)
target_compile_definitions(fuzz_http PRIVATE CHIMERE_TESTS_DIR="${CMAKE_SOURCE_DIR}/tests")
chimere_fuzzer(multipart chimere_server)
chimere_fuzzer(thinking chimere_server)
target_compile_definitions(fuzz_thinking PRIVATE CHIMERE_TESTS_DIR="${CMAKE_SOURCE_DIR}/tests")
