# Reads C files (paths relative to the root of the tree) and prints every #include that points the wrong way between
# the rooms, as file:line: text. The tables below are the rule; the picture is in docs/tour.md:
#
#     {nn, report} -> run -> {plan, device, tier} -> program -> base        tier -> net -> base        pool -> {plan/place, program, base}
#
# The command has no internal header: it is a client like any other.
BEGIN {
    # may[room]: the rooms whose internal headers ("room/...") it includes, besides its own.
    may["base"] = ""
    may["program"] = "base"
    may["plan"] = "program base"
    may["device"] = "program base"
    may["net"] = "base"
    may["tier"] = "net base"
    may["run"] = "plan device tier net program base"
    may["pool"] = "plan/place program base"
    may["nn"] = "run plan device tier net program base"
    may["report"] = "run plan device tier program base"
    may["cli"] = ""

    # public[room]: the public headers (<tidemark/...>) it includes.
    public["base"] = "status file nearest"
    public["program"] = "status program"
    public["plan"] = "status program machine plan place"
    public["device"] = "status program machine ops device"
    public["net"] = "status net"
    public["tier"] = "status program machine device net"
    public["run"] = "status net program machine ops plan device run session heap source"
    public["pool"] = "status program pool replay"
    public["nn"] = "status net nearest program machine ops plan device run session nn train pictures tokens predict"
    public["report"] = "status program machine ops plan device run report"
    public["cli"] = "status file nearest net program machine ops plan place device run session heap source pool replay nn train pictures tokens predict report tidemark"
    public["include"] = "status file nearest net program machine ops plan place device run session heap source pool replay nn train pictures tokens predict report"

    # only[prefix of a header]: the folders or files that may include a library beyond libc.
    only["dnnl"] = only["oneapi/"] = "src/device/cpu/onednn.h"
    only["omp.h"] = "src/device/cpu/"
    only["immintrin.h"] = "src/device/cpu/ src/tier/zeros.c"
    only["liburing"] = "src/tier/"
    only["CL/"] = "src/device/opencl/"
    only["cuda.h"] = "src/device/cuda/"
    only["cublas_v2.h"] = "src/device/cuda/cublas.h"
    only["cudnn.h"] = "src/device/cuda/cudnn.h"
    only["dlfcn.h"] = "src/device/gpu/ src/net/"
    only["mpi.h"] = "src/net/mpi/"
    only["png.h"] = "src/nn/picture_png.c"
    only["jpeglib.h"] = only["jerror.h"] = "src/nn/picture_jpeg.c"
    only["zlib.h"] = "src/nn/gunzip.c"

    libc = "assert ctype dirent errno fcntl float getopt inttypes limits locale malloc math poll pthread sched semaphore" \
        " setjmp signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib string strings time unistd"
}

function has(list, word) { return index(" " list " ", " " word " ") > 0 }

# Is the file below one of these folders?
function below(folders,    n, list, i) {
    n = split(folders, list, " ")
    for (i = 1; i <= n; i++)
        if (index(FILENAME, list[i]) == 1) return 1
    return 0
}

function complain(text) { printf "%s:%d: %s\n", FILENAME, FNR, text }

# May `room` include "header"? A folder in the table ("plan/place") allows only what is below it.
function may_include(room, header,    n, list, i) {
    n = split(may[room] " " room, list, " ")
    for (i = 1; i <= n; i++)
        if (index(header, list[i] "/") == 1) return 1
    return 0
}

function check_quoted(header) {
    if (room == "include") complain("a public header includes \"" header "\": installed headers use <...> only")
    else if (index(header, "/") == 0 && room != "cli") complain("\"" header "\": write the room, \"" room "/" header "\"")
    else if (index(header, "/") > 0 && !may_include(room, header)) complain(room " may not include \"" header "\"")
}

function check_angle(header,    prefix, name) {
    name = header
    sub(/\.h$/, "", name)
    if (sub(/^tidemark\//, "", name)) {
        if (!has(public[room], name)) complain(room " may not include <" header ">")
        return
    }
    for (prefix in only)
        if (index(header, prefix) == 1) {
            if (!below(only[prefix])) complain("<" header "> belongs in " only[prefix] " only")
            return
        }
    if (header !~ /^(sys|linux)\// && !has(libc, name)) complain("<" header "> is not libc, nor a listed library")
}

FNR == 1 {
    n = split(FILENAME, part, "/")
    room = part[1] == "src" ? part[2] : part[1]
    if (!(room in public)) complain("no room named \"" room "\" in the table")
}

(room in public) && match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]+[">]/) {
    text = substr($0, RSTART, RLENGTH)
    open = text ~ /</ ? "<" : "\""
    header = substr(text, index(text, open) + 1)
    header = substr(header, 1, length(header) - 1)
    if (open == "<") check_angle(header)
    else check_quoted(header)
}
