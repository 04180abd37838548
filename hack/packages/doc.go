// Package packages has what the deb and the rpm are made of, and their tests, which 'make test-packages' runs.
//
//	nfpm.yaml                  which files they have, and what they depend on
//	post…sh, pre…sh            what runs when one is installed or removed
//	documents                  the program that writes man pages, completions and licences
//
// hack/build-packages.sh makes them. The tests install them in a fresh Debian, once in a folder without systemd, as an image is
// built, and once in a machine that systemd runs. The rpm is tested with rpm, on a Debian too.
package packages
