#!/usr/bin/env bash
# Brings resources/languages/*.po up to date with the texts in the sources: new and changed ones are added without a
# translation, those that are gone are dropped. Needs the package gettext.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
texts=$(mktemp)
trap 'rm -f "$texts" "$texts.po"' EXIT
git ls-files -co --exclude-standard 'views/*.cpp' 'views/*.h' 'app/window/*.cpp' | LC_ALL=C sort |
  xgettext --files-from=- --language=C++ --from-code=UTF-8 --keyword=tr --keyword=tr_later --no-location \
    --no-wrap --sort-output --output="$texts"
for po in resources/languages/*.po; do
  msgmerge --quiet --update --backup=none --no-location --no-wrap --sort-output --no-fuzzy-matching "$po" "$texts"
  msgattrib --no-obsolete --no-wrap --sort-output "$po" | grep -vE '^"(POT-Creation-Date|Report-Msgid)' > "$texts.po"
  mv "$texts.po" "$po"
  msgfmt --check-format --check-domain --statistics -o /dev/null "$po"
done
