#!/bin/bash
# The documents are true: every line "$ ..." of a console block is run, in one folder per document, in the order of the
# document, and prints what stands below it. docs/formats.md: the examples of program, plan and decisions files are read.
# `TIDE_UPDATE_DOCS=1 bash tests/cli/test_docs.sh BUILD SOURCE` writes the real output into the documents. The other kinds of
# blocks are check_blocks.py's.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

# The document again, with what its console blocks really print.
real_output() {
    local line inside=no
    while IFS= read -r line; do
        case $inside:$line in
        no:'```console') inside=yes ;;
        yes:'```') inside=no ;;
        yes:'$ '*)
            printf '%s\n' "$line"
            PATH=$build_dir:$PATH bash -c "${line#\$ }" 2>&1 </dev/null
            continue
            ;;
        yes:*) continue ;;
        esac
        printf '%s\n' "$line"
    done
}

for path in $(cd "$source_dir" && grep -l '^```console' -- *.md docs/*.md docs/*/*.md); do
    name=${path//\//-}
    mkdir "folder-$name"
    (cd "folder-$name" && real_output <"$source_dir/$path" >"../$name")
    if [ "${TIDE_UPDATE_DOCS-}" ]; then
        cp "$name" "$source_dir/$path"
    elif ! diff "$source_dir/$path" "$name" >diff.txt; then
        echo "$path is not what the command prints (TIDE_UPDATE_DOCS=1 updates it):"
        head -40 diff.txt
        exit 1
    fi
done

# example KIND: the block of docs/formats.md whose first line says so.
example() {
    awk -v kind="\"tidemark\":\"$1\"" '
        /^```/ { inside = !inside; mine = 0; next }
        inside && index($0, kind) { mine = 1 }
        inside && mine' "$source_dir/docs/formats.md"
}
example program >tiny.jsonl
example plan >tiny.plan
example decisions >decisions.jsonl
run 0 model tiny.jsonl
run 0 verify tiny.plan tiny.jsonl
run 0 plan tiny.jsonl --policy manual --decisions decisions.jsonl --json
[ "$(json_number reruns)" = 1 ] || fail 'the example of a decisions file re-runs one op'
[ "$(json_number saves)" = 1 ] || fail 'the example of a decisions file saves one tensor'
finish
