# What `make install` puts where, the pkg-config file and the CMake package; and what goes into a wheel (pyproject.toml).
if(SKBUILD)
  install(TARGETS tidemark LIBRARY DESTINATION tidemark/lib COMPONENT python)
  install(TARGETS tidemark_cli RUNTIME DESTINATION tidemark/bin COMPONENT python)
  return()
endif()
install(TARGETS tidemark tidemark_static EXPORT tidemark LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tidemark DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET tidemark_cli)
  install(TARGETS tidemark_cli DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/machines)
  install(DIRECTORY machines DESTINATION ${CMAKE_INSTALL_DATADIR}/tidemark FILES_MATCHING PATTERN "*.json")
endif()
# Man pages and completions are made from what the command itself says; see tools/manual.
if(TARGET tidemark_cli AND NOT TIDE_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(manual ${CMAKE_CURRENT_BINARY_DIR}/manual)
  add_custom_command(OUTPUT ${manual}/tidemark.1
    COMMAND bash ${PROJECT_SOURCE_DIR}/tools/manual $<TARGET_FILE:tidemark_cli> ${manual}
    DEPENDS tidemark_cli ${PROJECT_SOURCE_DIR}/tools/manual VERBATIM)
  add_custom_target(tidemark_manual ALL DEPENDS ${manual}/tidemark.1)
  install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
  install(FILES ${manual}/tidemark.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tidemark)
  install(FILES ${manual}/_tidemark DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What a program that links the static library must link as well.
if(TIDE_CPU)
  get_filename_component(dnnl ${DNNL_LIBRARY} NAME_WE)
  string(REGEX REPLACE "^lib" "-l" TIDE_PC_PRIVATE ${dnnl})
endif()
foreach(name ${OpenMP_C_LIB_NAMES})
  string(APPEND TIDE_PC_PRIVATE " -l${name}")
endforeach()
if(URING_LIBRARY)
  string(APPEND TIDE_PC_PRIVATE " -luring")
endif()
string(APPEND TIDE_PC_PRIVATE " -lm")
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH TIDE_PC_PREFIX /${pc_dir} /)
string(REGEX REPLACE "/$" "" TIDE_PC_PREFIX ${TIDE_PC_PREFIX})
configure_file(cmake/tidemark.pc.in tidemark.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tidemark.pc DESTINATION ${pc_dir})

# find_package(tidemark) gives tidemark::tidemark (shared) and tidemark::tidemark_static.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tidemark)
write_basic_package_version_file(tidemark-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/tidemark-config.cmake tidemark-config.cmake @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tidemark-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/tidemark-config-version.cmake
  DESTINATION ${package_dir})
install(EXPORT tidemark NAMESPACE tidemark:: FILE tidemark-targets.cmake DESTINATION ${package_dir})
