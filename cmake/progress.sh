# How far long work has come, for people who wait. Sourced by ./cohort.
#
# show_progress WHAT reads what ninja (with the status `[done/all]`) or apt (its status lines) says of
# its progress, and turns it into one line that says what is done, how far it is and about how long
# it will still take: renewed in place on a terminal, else printed when a tenth more is done. Lines of
# another kind, such as a compiler's errors, go through as they are.

# left SECONDS DONE ALL: how long the rest takes if it goes on like this, in words. Nothing is said of
# the first instants, when nobody can know.
left() {
  local seconds=$1 done=$2 all=$3 rest
  ((seconds < 5 || done * 50 < all)) && return
  rest=$((seconds * (all - done) / done))
  if ((rest >= 90)); then
    echo ", about $(((rest + 30) / 60)) minutes left"
  elif ((rest > 0)); then
    echo ", about $rest seconds left"
  fi
}

show_progress() {
  local what=$1 line done all told=-1 tenth shown= began=$SECONDS clear=
  [ -t 2 ] && clear=$'\r\033[K'
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      'ninja: Entering '* | 'ninja: no work '* | '['*'] Re-'* | '-- '*) continue ;;
    esac
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
    elif [[ $line =~ ^(dl|pm)status:[^:]*:([0-9]+) ]]; then
      # First all is fetched, then all is unpacked and set up: two halves.
      done=$((${BASH_REMATCH[2]} / 2)) all=100
      [ "${BASH_REMATCH[1]}" = pm ] && done=$((done + 50))
    else
      echo "${shown:+$clear}$line" >&2
      shown=
      continue
    fi
    tenth=$((done * 10 / all))
    if [ -n "$clear" ]; then
      printf '%scohort: %s: %d %%%s' "$clear" "$what" $((done * 100 / all)) \
        "$(left $((SECONDS - began)) "$done" "$all")" >&2
      shown=1
    elif ((tenth > told && SECONDS - began >= 2)); then
      echo "cohort: $what: $((done * 100 / all)) %$(left $((SECONDS - began)) "$done" "$all")" >&2
      told=$tenth
    fi
  done
  [ -n "$shown" ] && printf '%s' "$clear" >&2
  return 0
}
