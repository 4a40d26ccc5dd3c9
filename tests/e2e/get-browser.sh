#!/bin/sh
# The browser tests need a Chromium. As root it is installed from the distribution; otherwise somebody has to do it.
set -eu
command -v chromium >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing chromium ..."
  { apt-get install -qq -y --no-install-recommends chromium ||
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; }; } >/dev/null
  exit 0
fi
echo "the browser tests need Chromium at /usr/bin/chromium: install it, for example with \`apt-get install chromium\`" >&2
exit 1
