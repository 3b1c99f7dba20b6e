#!/bin/bash
# `mpirun -n N tidemark train`: any number of ranks trains to the bits of one, rank 0 speaks and saves for all, checkpoints
# move between numbers of ranks, and a rank that is killed or stopped ends the job in time with one message.
# shellcheck source=tests/cli/ranks.sh
. "$2/tests/cli/ranks.sh" "$@"
skip_sanitized

# Without its plug-in a job is refused, whatever it asks for.
code=0
TIDE_NET_PLUGIN=$work/none OMPI_COMM_WORLD_SIZE=2 "$tidemark" train lenet >"$work/out" 2>"$work/err" || code=$?
[ $code -eq 10 ] && grep -q 'a job of 2 ranks needs the MPI plug-in' "$work/err" || fail "no refusal: $code"

need_mpi
if ldd "$tidemark" | grep -q mpi; then fail "the command links MPI"; fi

ranks() { # how many, then options
    local n=$1
    shift
    timeout 100 mpirun.openmpi --oversubscribe -n "$n" "$tidemark" train lenet --batch 16 --micro 4 --samples 256 \
        --test-samples 8 --threads 1 --quiet "$@"
}
hash_of() {
    ranks "$@" --json >"$work/out" 2>"$work/err" || fail "train $*: exit code $?"
    [ "$(grep -c '"bits"' "$work/out")" -eq 1 ] || fail "train $*: not one report"
    grep -oE '"bits": *"[^"]*"' "$work/out"
}

one=$(hash_of 1 --steps 4)
for n in 2 4; do
    [ "$(hash_of $n --steps 4)" = "$one" ] || fail "$n ranks have other bits than one"
done
[ "$(hash_of 2 --steps 4 --budget 70% --effort low)" = "$one" ] || fail "2 ranks in a budget have other bits"

# A report of all ranks, some of which have only a part of the states; each waits for messages of another.
hash_of 4 --steps 2 --optimizer adam --shard optimizer --record "$work/run" >/dev/null
"$tidemark" report "$work/run" -o "$work/page.html" >"$work/out" 2>"$work/err" || fail "no report of four ranks"
python3 - "$work/page.html" >"$work/out" 2>"$work/err" <<'END' || fail "a report of four ranks does not say who waits for whom"
import base64, json, re, sys
meta = json.loads(base64.b64decode(re.search(r'id="meta-block">([^<]*)<', open(sys.argv[1]).read())[1]))
ranks = meta["ranks"]
print([rank["waits"] for rank in ranks])
assert len(ranks) == 4 and min(rank["begin_ns"] for rank in ranks) == 0
waits = [dict(rank["waits"]) for rank in ranks]
assert all(len(w) == len(rank["waits"]) for w, rank in zip(waits, ranks))
assert all(sum(w.values()) > 0 and i not in w and set(w) <= {0, 1, 2, 3} for i, w in enumerate(waits))
assert all(sum(w.values()) <= rank["step_ns"] for w, rank in zip(waits, ranks))
END

# 4 ranks, then 2, then 1, then 4 again, whatever lies at one rank only.
checkpoint=$work/c
hash_of 4 --steps 1 --shard all --checkpoint "$checkpoint" >/dev/null
hash_of 2 --steps 2 --shard optimizer --resume "$checkpoint" --checkpoint "$checkpoint" --save-weights "$work/w" >/dev/null
[ -s "$work/w" ] || fail "2 ranks save no weights"
hash_of 1 --steps 3 --resume "$checkpoint" --checkpoint "$checkpoint" >/dev/null
[ "$(hash_of 4 --steps 4 --resume "$checkpoint" --shard all)" = "$one" ] || fail "a training over 4, 2, 1 and 4 ranks has other bits"
grep -q '"shard": *"all"' "$work/out" && [ "$(grep -c '"messages_ns"' "$work/out")" -eq 4 ] || fail "the ranks are not reported"

# The least with which all fit: 1.44 MiB is needed with everything everywhere, 1.20 MiB with optimizer state at its owners.
hash_of 2 --steps 1 --optimizer adam --policy liveness --budget 1300KiB --shard auto >/dev/null
grep -q '"shard": *"optimizer"' "$work/out" || fail "--shard auto takes another one"
code=0
ranks 2 --steps 1 --shard some >"$work/out" 2>"$work/err" || code=$?
grep -q -- '--shard: "some" is not none, optimizer, all or auto' "$work/err" || fail "--shard some: $code"

# Three ranks share nothing, whatever --micro says.
code=0
timeout 100 mpirun.openmpi --oversubscribe -n 3 "$tidemark" train lenet --batch 8 --threads 1 >"$work/out" 2>"$work/err" || code=$?
# Each refuses by itself, or has heard of another's refusal first (13).
case $code in 2 | 13) ;; *) fail "three ranks: exit code $code" ;; esac
grep -q '3 ranks: their number has to be a power of two' "$work/err" || fail "three ranks: no reason"

# A rank that fails alone: rank 0 says why, which is not what it remarked before.
cat >"$work/alone" <<END
#!/bin/sh
[ "\$OMPI_COMM_WORLD_RANK" = 0 ] || export TMPDIR=/nosuch
exec "$tidemark" "\$@"
END
chmod +x "$work/alone"
code=0
timeout 100 mpirun.openmpi --oversubscribe -n 2 "$work/alone" train lenet --batch 16 --steps 1 --budget 70% \
    --effort low >"$work/out" 2>"$work/err" || code=$?
[ $code -eq 6 ] || fail "a rank without a folder for spilled bytes: exit code $code"
grep -q '^tidemark: rank 1 on .*: cannot create the spill file /nosuch/' "$work/err" || fail "rank 0 does not say why rank 1 failed"
[ "$(grep -cE '^tidemark: [0-9]+ threads? per rank, as --threads [0-9]+ says' "$work/err")" -eq 1 ] || fail "threads are chosen without a word"

# hurt SIGNAL RANK: the first line on stderr says it.
hurt() {
    local code=0 pid='' begin
    ranks 2 --steps 100000 --log "$work/log.csv" >"$work/out" 2>"$work/err" &
    local job=$!
    for _ in $(seq 200); do
        [ "$(wc -l 2>/dev/null <"$work/log.csv" || echo 0)" -gt 4 ] && break
        sleep 0.1
    done
    for p in $(pgrep -x tidemark); do
        if descends "$p" $job && grep -qzxF "OMPI_COMM_WORLD_RANK=$2" "/proc/$p/environ"; then pid=$p; fi
    done
    [ -n "$pid" ] || fail "no rank $2 to hurt"
    begin=$SECONDS
    kill "-$1" "$pid"
    wait $job || code=$?
    [ $((SECONDS - begin)) -le 10 ] || fail "after $1 the job went on for $((SECONDS - begin)) s"
    [ $code -eq "$3" ] || fail "after $1 the exit code is $code instead of $3"
    [ "$(grep -cE "^tidemark: rank $2 on .*, last in step [0-9]+: " "$work/err")" -eq 1 ] || fail "after $1: not one message"
    [ "$(grep -c '^tidemark:' "$work/err")" -eq 1 ] || fail "after $1: more than one message"
    rm -f "$work/log.csv"
}
hurt STOP 1 13
hurt STOP 0 13
hurt KILL 1 137 # mpirun's own code for it

# Interrupted, it ends after the same step everywhere, and is saved.
code=0
ranks 2 --steps 100000 --checkpoint "$work/i" --log "$work/log.csv" >"$work/out" 2>"$work/err" &
job=$!
for _ in $(seq 200); do
    [ "$(wc -l 2>/dev/null <"$work/log.csv" || echo 0)" -gt 4 ] && break
    sleep 0.1
done
for p in $(pgrep -x tidemark); do if descends "$p" $job; then kill -TERM "$p"; fi; done
wait $job || code=$?
[ $code -eq 11 ] || fail "interrupted: exit code $code"
[ -s "$work/i" ] || fail "interrupted: nothing is saved"
[ "$(grep -c 'interrupted after step' "$work/err")" -eq 1 ] || fail "interrupted: not one message"
