# find_package(tidemark): the targets, and what the static library links.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
if(@TIDE_CPU@)
  find_dependency(OpenMP COMPONENTS C)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/tidemark-targets.cmake)
