# Functions that declare Fovea's libraries, tools and TableGen headers.

# Use a compiler cache where there is one. It must compare precompiled headers
# by their contents, not by their times.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# Interface target with the flags of our own code; MLIR's headers are system
# headers, so that -Werror concerns our code only.
add_library(FoveaOptions INTERFACE)
target_include_directories(FoveaOptions INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
target_include_directories(FoveaOptions SYSTEM INTERFACE
  ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
separate_arguments(FOVEA_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(FoveaOptions INTERFACE ${FOVEA_LLVM_DEFINITIONS})
target_compile_options(FoveaOptions INTERFACE
  -Wall -Wextra -Werror -Wno-unused-parameter
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>
  -fdata-sections -ffunction-sections)
# Assertions: our own, and those in LLVM's and MLIR's headers.
target_compile_options(FoveaOptions INTERFACE
  $<$<AND:$<CONFIG:Debug>,$<COMPILE_LANGUAGE:CXX>>:SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/statistics.h>)
target_link_options(FoveaOptions INTERFACE -fuse-ld=lld -Wl,--gc-sections)
if(FOVEA_SANITIZE)
  # No vptr check: it needs type information of MLIR's classes on both sides.
  target_compile_options(FoveaOptions INTERFACE
    -fsanitize=address,undefined -fno-sanitize=vptr,function
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(FoveaOptions INTERFACE -fsanitize=address,undefined)
endif()

# LLVM and MLIR, as the packaged libraries, and linked in.
add_library(FoveaMLIR INTERFACE)
target_link_libraries(FoveaMLIR INTERFACE MLIR LLVM)
file(GLOB FOVEA_ARCHIVES
  ${LLVM_LIBRARY_DIRS}/libMLIR*.a ${LLVM_LIBRARY_DIRS}/libLLVM*.a)
find_library(FOVEA_ZSTD libzstd.a)
find_library(FOVEA_ZLIB libz.a)
if(NOT FOVEA_ARCHIVES OR NOT FOVEA_ZSTD OR NOT FOVEA_ZLIB)
  message(FATAL_ERROR
    "the library of wheels and bundles has LLVM linked in: expected libLLVM*.a and "
    "libMLIR*.a in ${LLVM_LIBRARY_DIRS} (Debian: llvm-22-dev, libmlir-22-dev), "
    "libzstd.a (libzstd-dev) and libz.a (zlib1g-dev)")
endif()
add_library(FoveaStaticMLIR INTERFACE)
target_link_libraries(FoveaStaticMLIR INTERFACE
  ${FOVEA_ARCHIVES} ${FOVEA_ZSTD} ${FOVEA_ZLIB} ${CMAKE_DL_LIBS} m)

# Tools share the libraries' precompiled header, so they share their -fPIC.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)

# One precompiled header for all libraries and tools: most of a file's compile
# time is MLIR's headers.
file(WRITE ${PROJECT_BINARY_DIR}/pch.cpp "")
add_library(FoveaPCH OBJECT ${PROJECT_BINARY_DIR}/pch.cpp)
target_link_libraries(FoveaPCH PRIVATE FoveaOptions)
target_precompile_headers(FoveaPCH PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h)

# Every generated header, so that a parallel build orders itself.
add_custom_target(fovea-headers)

# fovea_add_library(Name sources... LINK libs...)
function(fovea_add_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC FoveaOptions ${ARG_LINK})
  target_precompile_headers(${name} REUSE_FROM FoveaPCH)
  add_dependencies(${name} fovea-headers)
endfunction()

# fovea_add_tool(name sources... LINK libs...)
function(fovea_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE FoveaOptions ${ARG_LINK} FoveaMLIR)
  target_precompile_headers(${name} REUSE_FROM FoveaPCH)
  add_dependencies(${name} fovea-headers)
  set_property(GLOBAL APPEND PROPERTY FOVEA_TOOLS ${name})
endfunction()

# fovea_tablegen(input.td output generator-flags...)
macro(fovea_tablegen td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(pairs ${ARGN})
  while(pairs)
    list(POP_FRONT pairs output flags)
    separate_arguments(flags)
    mlir_tablegen(${output} ${flags})
  endwhile()
endmacro()

# Reference pages, generated from TableGen descriptions. They are committed in
# docs/reference; a test compares. `ninja fovea-docs` brings them up to date.
add_custom_target(fovea-docs)

# fovea_add_doc(input.td page generator-flags)
function(fovea_add_doc td page flags)
  separate_arguments(flags)
  set(LLVM_TARGET_DEFINITIONS ${td})
  tablegen(MLIR ${page}.md ${flags} "-I${PROJECT_SOURCE_DIR}/include")
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${page}.md)
  set(built ${PROJECT_BINARY_DIR}/docs/${page}.md)
  add_custom_command(OUTPUT ${built}
    COMMAND ${CMAKE_COMMAND} -E copy ${generated} ${built} DEPENDS ${generated})
  add_custom_target(fovea-doc-${page} ALL DEPENDS ${built})
  add_custom_target(fovea-update-doc-${page}
    COMMAND ${CMAKE_COMMAND} -E copy ${built}
            ${PROJECT_SOURCE_DIR}/docs/reference/${page}.md
    DEPENDS fovea-doc-${page})
  add_dependencies(fovea-docs fovea-update-doc-${page})
endfunction()
