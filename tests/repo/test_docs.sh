#!/bin/bash
# What the documents and comments point to exists: every path below a folder of the project that a Markdown file names,
# and every docs/*.md that a source file names. A path may contain "*" and lack its ending; <...> stands for anything.
set -eu
cd "$2"
folders='src|tests|include|cli|docs|tools|examples|machines|bench|cmake'

mentions() { # file:path, one per line
    grep -oHE "(^|[^A-Za-z0-9_/.-])($folders)/[A-Za-z0-9_./*<>-]+" -- *.md docs/*.md docs/*/*.md |
        sed -E "s#:[^A-Za-z]*($folders)/#:\1/#"
    grep -roHE 'docs/[a-z_/-]+\.md' src include cli tests tools CMakeLists.txt
}

missing=0
while IFS=: read -r file path; do
    pattern=$(echo "$path" | sed -E 's/<[^>]*>/*/g; s/\*\*/*/g; s/[.,;:]+$//')
    compgen -G "$pattern*" >/dev/null || { echo "$file: there is no $path"; missing=1; }
done < <(mentions | sort -u)
exit $missing
