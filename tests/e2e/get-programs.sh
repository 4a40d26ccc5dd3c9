#!/bin/sh
# The browser tests need a Chromium, the terminal tests a tmux. As root they are installed from the distribution; otherwise
# somebody has to do it.
set -eu
missing=""
for program in chromium tmux; do
  command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing$missing ..."
  # shellcheck disable=SC2086
  { apt-get install -qq -y --no-install-recommends $missing ||
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $missing; }; } >/dev/null
  exit 0
fi
echo "the tests need$missing: install it, for example with \`apt-get install$missing\`" >&2
exit 1
