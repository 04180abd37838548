// Command kernels runs the tests with packets on the kernels, and with the iptables and nft, that Debian's releases have. `make
// test-kernels` runs it.
//
//	go run ./hack/kernels [-packages REGEXP] [-run REGEXP] [-all] [-publish] [KERNEL...]
//
// Each kernel has a virtual machine, one after the other. QEMU emulates its processor, because many machines that run tests cannot
// virtualize:
//
//	this process                                the virtual machine
//	    | go test -c                        .......................................
//	    v                                   . init.sh, from the disk of           .
//	_output/kernels/tests -- a disk ------> .    |    hack/build-kernel.sh        .
//	                                        .    v                                .
//	    report <------ second serial port -- . kernels inside, from the other disk .
//	    |                                   .    `- the tests, one package at a time .
//	    v                                   .......................................
//	results.json, RESULTS.md
//
// An emulated machine is 16 to 20 times slower (Slowness in results.json), and up to 60 times where other work runs beside it. The
// program measures by how much, and passes the factor to the tests ([lab.SlownessVariable]), which multiply their deadlines by it.
// The factor is 20 at most, because a failing test waits until its deadline passes. A test that fails beside other work says little:
// run it again on an idle machine.
//
// The short form tests once each thing that another kernel or tool may do differently; -all runs all tests of the packages.
//
// results.json has the last results of each kernel, RESULTS.md is a table of it. Both are written with -publish.
//
// The disks are opened as snapshots: nothing that runs in a machine changes them, and nothing of a machine is left.
package main
