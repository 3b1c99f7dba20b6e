# Turns files into a C file: `cmake -DOUTPUT=data.c -DHEADER=report/assets.h -DTYPE=tide__asset -DTABLE=tide__assets
# -DFILES="a;b" -P embed.cmake`: an array TABLE of TYPE {name, bytes, size}, declared in HEADER.
set(text "/* Made by cmake/embed.cmake. */\n#include \"${HEADER}\"\n\n")
set(table "const ${TYPE} ${TABLE}[] = {\n")
set(index 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND text "static const unsigned char asset${index}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${name}\", asset${index}, sizeof asset${index} - 1},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT} "${text}\n${table}    {0},\n};\n")
