# counterflow_layer(name [USES layer...] [LINKS library...] [EXCEPT folder...])
# A folder as a static library counterflow_<name>, of all its sources but those of the folders that
# are libraries of their own. Headers are included from the
# project's root; what a layer does not use it cannot link, and tests/layers.py checks the includes.
add_library(counterflow_options INTERFACE)
target_compile_options(counterflow_options INTERFACE -Wall -Wextra -Wconversion -Wshadow)
if(COUNTERFLOW_WERROR)
  target_compile_options(counterflow_options INTERFACE -Werror)
endif()
# g++ 12 sees faults in std::string that are not there (its bugs 105329, 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(counterflow_options INTERFACE
                         -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
if(COUNTERFLOW_SANITIZE)
  target_compile_options(counterflow_options INTERFACE
                         -fsanitize=${COUNTERFLOW_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(counterflow_options INTERFACE -fsanitize=${COUNTERFLOW_SANITIZE})
endif()
if(COUNTERFLOW_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "COUNTERFLOW_FUZZ needs clang++ with libFuzzer: apt-get install clang "
                        "libclang-rt-dev, then cmake --preset asan in a build folder of its own")
  endif()
  target_compile_options(counterflow_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# counterflow_precompile(target [header...])
# What nearly every file includes, and these, parsed once for the target; only to build faster, so a
# build without it must work too.
function(counterflow_precompile target)
  if(COUNTERFLOW_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <cstddef> <cstdint> <functional> <limits> <map> <memory> <numeric>
      <optional> <set> <span> <string> <string_view> <tuple> <utility> <vector> <fmt/format.h>
      ${ARGN})
  endif()
endfunction()

function(counterflow_layer name)
  cmake_parse_arguments(arg "" "" "USES;LINKS;EXCEPT" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder IN LISTS arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${folder}/")
  endforeach()
  add_library(counterflow_${name} STATIC ${sources})
  target_include_directories(counterflow_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(counterflow_${name} PRIVATE counterflow_options)
  foreach(layer IN LISTS arg_USES)
    target_link_libraries(counterflow_${name} PUBLIC counterflow_${layer})
  endforeach()
  target_link_libraries(counterflow_${name} PRIVATE ${arg_LINKS})
  counterflow_precompile(counterflow_${name})
endfunction()
