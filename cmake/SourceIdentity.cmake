# Writes to OUT a definition of FOVEA_SOURCES, a text that changes with every source
# file of FILES (a list of names): the sum of their sums.
file(STRINGS ${FILES} names)
set(sums "")
foreach(name IN LISTS names)
  file(SHA256 ${name} sum)
  string(APPEND sums ${sum})
endforeach()
string(SHA256 identity "${sums}")
file(WRITE ${OUT} "#define FOVEA_SOURCES \"${identity}\"\n")
