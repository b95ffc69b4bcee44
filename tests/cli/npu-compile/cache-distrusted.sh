# SPDX-License-Identifier: Apache-2.0
# A cache that other users can write to decides nothing: it costs a warning.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
compile() { npu-compile --cache-dir cache "$model" -o "$1" --report 2>messages; echo "exit $?"; grep -v '^ ' messages | grep 'warning\|^cache'; }
echo "this user's alone, whatever the umask:"
umask 002
compile a.npub
compile b.npub
stat -c %A cache cache/*
umask 022
echo "a folder for all:"
chmod 1777 cache
compile b.npub
cmp a.npub b.npub
echo "an entry for all:"
chmod 755 cache
chmod 666 cache/*
compile b.npub 2>&1 | sed 's/entry [0-9a-f]*/entry KEY/'
cmp a.npub b.npub
echo "a pipe as an entry:"
entry=$(ls cache/*.npublob)
rm "$entry"
mkfifo -m 644 "$entry"
compile b.npub 2>&1 | sed 's/entry [0-9a-f]*/entry KEY/'
cmp a.npub b.npub
compile b.npub
echo "a link as an entry:"
mv "$entry" elsewhere
ln -s ../elsewhere "$entry"
compile b.npub 2>&1 | sed 's/entry [0-9a-f]*/entry KEY/'
