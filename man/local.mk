# manual pages
dist_man_MANS += man/moorfs.1 man/mount.moorfs.8
