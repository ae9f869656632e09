# `cmake --install`: the library, the public headers and find_package(Cohort).
if(NOT COHORT_WITH_TORCH)
  return()
endif()
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY COHORT_ROOMS)
add_library(cohort SHARED)
foreach(room ${rooms})
  target_sources(cohort PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
target_link_libraries(cohort PRIVATE $<BUILD_INTERFACE:cohort_train> PUBLIC ${TORCH_LIBRARIES})
target_include_directories(cohort PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(cohort PUBLIC cxx_std_20)
set_target_properties(cohort PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX)

install(TARGETS cohort EXPORT CohortTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/cohort DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS cohort_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT CohortTargets NAMESPACE Cohort:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Cohort)
configure_package_config_file(cmake/CohortConfig.cmake.in CohortConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Cohort)
write_basic_package_version_file(CohortConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/CohortConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/CohortConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Cohort)
