# A room is a folder of src/: one library of its *.cc files, one test program of its *_test.cc files.
#
#   cohort_room(collective DEPENDS transport cluster base [TORCH] [LIBRARIES …] [HIDDEN_LIBRARIES …]
#     [COST SECONDS] [TORCH_TEST_DEPENDS …])
#
# DEPENDS names the lower rooms it includes; HIDDEN_LIBRARIES those no header of it shows; TORCH says it may include LibTorch (and shares the
# precompiled header). Rooms with TORCH are left out when COHORT_WITH_TORCH is off.
#
# A room that is free of torch may have tests that compare it with torch: its *_torch_test.cc files become
# a test program of their own, <name>_torch_test, only where COHORT_WITH_TORCH is on. TORCH_TEST_DEPENDS
# names the rooms, higher ones too, that these tests include beside their own.
#
# A room's files are compiled a dozen at a time (a unity build), which takes a quarter of the time that
# one by one takes: headers are read once. APART names those that are not, because they have a
# name in their unnamed namespace that another file has too. COST is about how long its tests take: the
# longest are begun first, so that none is still running alone at the end.

add_library(cohort_flags INTERFACE)
target_include_directories(cohort_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(cohort_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)
target_link_libraries(cohort_flags INTERFACE Threads::Threads fmt::fmt)
# Linked last, so that they count: tests see constants of other files of their batch, and g++ 12 takes
# vectors in temporary options for uninitialised.
add_library(cohort_test_flags INTERFACE)
target_compile_options(cohort_test_flags INTERFACE -Wno-shadow -Wno-maybe-uninitialized)
if(COHORT_SANITIZE)
  target_compile_options(cohort_flags INTERFACE
    -fsanitize=${COHORT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(cohort_flags INTERFACE -fsanitize=${COHORT_SANITIZE})
else()
  # A message or a file that finds a hole ends the task instead of using it. The sanitizers look
  # closer, and do not go together with these. Rooms whose inner loops run over numbers that were
  # counted before (COHORT_KERNELS) do without the library's checks of every index, which would
  # keep them from being vectorised.
  target_compile_options(cohort_flags INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:COHORT_KERNELS>>>:-D_GLIBCXX_ASSERTIONS>
    -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong)
  target_link_options(cohort_flags INTERFACE -Wl,-z,relro -Wl,-z,now)
endif()

if(COHORT_BUILD_TESTS)
  add_library(cohort_test_main OBJECT ${PROJECT_SOURCE_DIR}/tests/room_test_main.cc)
  target_link_libraries(cohort_test_main PRIVATE cohort_flags PUBLIC GTest::gmock spdlog::spdlog)
endif()

if(COHORT_WITH_TORCH)
  # LibTorch's headers are system headers to us: their warnings are not ours.
  add_library(cohort_torch INTERFACE)
  target_include_directories(cohort_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(cohort_torch INTERFACE ${TORCH_LIBRARIES})

  # <torch/torch.h> takes 20 s to read; every torch room reuses this one reading of it.
  if(NOT EXISTS ${PROJECT_BINARY_DIR}/torch_pch.cc)
    file(WRITE ${PROJECT_BINARY_DIR}/torch_pch.cc "\n")
  endif()
  add_library(cohort_pch OBJECT ${PROJECT_BINARY_DIR}/torch_pch.cc)
  target_link_libraries(cohort_pch PRIVATE cohort_flags cohort_torch)
  target_precompile_headers(cohort_pch PRIVATE <torch/torch.h>)
endif()

function(cohort_use_torch target)
  target_link_libraries(${target} PUBLIC cohort_torch)
  target_precompile_headers(${target} REUSE_FROM cohort_pch)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    # The header was read with -fPIC; with -fPIE, which programs get, the compiler refuses it.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()

function(cohort_room name)
  cmake_parse_arguments(ROOM "TORCH" "COST"
    "DEPENDS;LIBRARIES;HIDDEN_LIBRARIES;SOURCES;APART;TORCH_TEST_DEPENDS" ${ARGN})
  if(ROOM_TORCH AND NOT COHORT_WITH_TORCH)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(NOT ROOM_TORCH)
    set(torch_tests ${tests})
    list(FILTER torch_tests INCLUDE REGEX "_torch_test\\.cc$")
    list(FILTER tests EXCLUDE REGEX "_torch_test\\.cc$")
  endif()
  list(TRANSFORM ROOM_DEPENDS PREPEND cohort_)

  add_library(cohort_${name} STATIC ${sources} ${ROOM_SOURCES})
  set_target_properties(cohort_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  set_source_files_properties(${ROOM_APART} ${ROOM_SOURCES} PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(cohort_${name} PUBLIC cohort_flags ${ROOM_DEPENDS} ${ROOM_LIBRARIES}
    PRIVATE ${ROOM_HIDDEN_LIBRARIES})
  if(ROOM_TORCH)
    cohort_use_torch(cohort_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY COHORT_ROOMS cohort_${name})

  if(COHORT_BUILD_TESTS AND tests)
    add_executable(${name}_test ${tests})
    set_target_properties(${name}_test PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    target_link_libraries(${name}_test PRIVATE cohort_${name} ${ROOM_HIDDEN_LIBRARIES}
      cohort_test_main cohort_test_flags)
    if(ROOM_TORCH)
      cohort_use_torch(${name}_test)
    endif()
    add_test(NAME ${name} COMMAND ${name}_test)
    # Only what hangs should meet it: sanitizers on a slow day take ten times as long.
    if(COHORT_SANITIZE)
      set_tests_properties(${name} PROPERTIES TIMEOUT 1500)
    else()
      set_tests_properties(${name} PROPERTIES TIMEOUT 900)
    endif()
    if(ROOM_COST)
      set_tests_properties(${name} PROPERTIES COST ${ROOM_COST})
    endif()
  endif()

  if(COHORT_BUILD_TESTS AND COHORT_WITH_TORCH AND torch_tests)
    list(TRANSFORM ROOM_TORCH_TEST_DEPENDS PREPEND cohort_)
    add_executable(${name}_torch_test ${torch_tests})
    target_link_libraries(${name}_torch_test PRIVATE cohort_${name} ${ROOM_TORCH_TEST_DEPENDS}
      cohort_test_main cohort_test_flags)
    cohort_use_torch(${name}_torch_test)
    add_test(NAME ${name}_torch COMMAND ${name}_torch_test)
    set_tests_properties(${name}_torch PROPERTIES TIMEOUT 600)
  endif()
endfunction()
