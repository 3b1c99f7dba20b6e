# For CMAKE_TOOLCHAIN_FILE: builds for arm64 on another processor, and tests in qemu-user. TIDE_ARM64: the folder that
# tools/arm64-libraries prints.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TIDE_ARM64)
set(CMAKE_FIND_ROOT_PATH ${TIDE_ARM64})
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${TIDE_ARM64}/usr/lib/aarch64-linux-gnu")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu
  -E LD_LIBRARY_PATH=${TIDE_ARM64}/usr/lib/aarch64-linux-gnu:${TIDE_ARM64}/lib/aarch64-linux-gnu)
