#!/bin/sh
# Puts Debian's torch into a root file system that mmdebstrap makes (its $1), and proves that it has gloo.
#
# libtorch is linked with OpenCV, FFmpeg and databases of which it calls nothing: some 300 packages
# that are left out, with their entries in its list of needed libraries. It is linked to have
# all of its symbols resolved when it is loaded, so an entry too many would show in the import below.
set -eu
root=$1
torch=usr/lib/python3/dist-packages/torch

cd "$root/tmp"
APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -qq -o APT::Sandbox::User=root \
    download libtorch1.13 python3-torch >/dev/null
for package in ./*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" \
        --exclude="./$torch/bin/test_*" --exclude="./$torch/include" --exclude=./usr/share/doc
    rm "$package"
done

library=$(basename "$root"/usr/lib/*/libtorch_cpu.so.1.13.0)
folder=$(cd "$root" && dirname usr/lib/*/"$library")
chroot "$root" patchelf --print-needed "/$folder/$library" |
    grep -E '^lib(opencv_.*|av(codec|format|util)|sw(scale|resample)|leveldb|lmdb|snappy|zmq)\.so' |
    sed 's/^/--remove-needed /' | xargs chroot "$root" patchelf "/$folder/$library"

# torch 1.13 looks for the member NONE in a loop over flags, which Python 3.11 leaves out of it.
sed -i 's/for s in Std:/for s in map(Std, range(4)):/' \
    "$root/$torch/distributed/elastic/multiprocessing/api.py"

# Byte code of what training imports, so that no pod has to make it.
chroot "$root" python3 -W ignore -c '
import torch.distributed.run, torch.nn.parallel
assert torch.distributed.is_gloo_available(), "this torch was built without gloo"'
rm -rf "$root"/usr/share/perl "$root"/usr/lib/*/perl "$root"/var/cache/apt "$root"/var/lib/apt
