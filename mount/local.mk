# mount.moorfs
