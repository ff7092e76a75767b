module nightshift.dev/stand-in-node

go 1.24
