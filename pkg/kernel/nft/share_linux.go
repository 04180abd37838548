package nft

import (
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// load is what an expression loads, whatever the register, and how many bytes it takes there.
type load struct {
	what  any
	bytes int
}

// loadOf returns what an expression loads, and to which register; nothing of what this file need not know.
func loadOf(e expr.Any) (l load, to *uint32) {
	switch e := e.(type) {
	case *expr.Payload:
		what := *e
		what.DestRegister = 0
		return load{what, aligned(int(e.Len))}, &e.DestRegister
	case *expr.Meta:
		if e.Key == expr.MetaKeyL4PROTO {
			return load{e.Key, 4}, &e.Register
		}
	case *expr.Ct:
		if e.Key == expr.CtKeyPROTOCOL {
			return load{e.Key, 4}, &e.Register
		}
	}
	return load{}, nil
}

// shareLoads leaves out loads of fields that the first three registers have already. Keys share what they begin with. A field that a set is asked
// for alone is loaded behind the last key, where a longer key may use it.
func shareLoads(exprs []expr.Any) (shared []expr.Any) {
	var held []load // from the first register on
	for len(exprs) > 0 {
		key := keyAt(exprs)
		n := len(key)
		loads, use := exprs[:n], exprs[n]
		exprs = exprs[n+1:]
		ask, asks := use.(*expr.Lookup)
		switch same := commonPrefix(held, key); {
		case !asks || ask.DestRegister != 0 && ask.DestRegister != unix.NFT_REG_4:
			held = nil // it may have changed registers
		case same == min(len(held), n):
			loads, held = loads[same:], append(held, key[same:]...)
		case n == 1 && bytesOf(held)+key[0].bytes <= 3*16:
			at := slices.Index(held, key[0])
			if at < 0 {
				at, held = len(held), append(held, key[0])
				_, to := loadOf(loads[0])
				*to = register(bytesOf(held[:at]))
			} else {
				loads = nil
			}
			ask.SourceRegister = register(bytesOf(held[:at]))
		default:
			held = key
		}
		shared = append(append(shared, loads...), use)
	}
	return shared
}

// keyAt returns what the first expressions load, one behind the other from the first register on.
func keyAt(exprs []expr.Any) (key []load) {
	for _, e := range exprs[:len(exprs)-1] {
		l, to := loadOf(e)
		if to == nil || *to != register(bytesOf(key)) {
			break
		}
		key = append(key, l)
	}
	return key
}

func commonPrefix(a, b []load) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func bytesOf(key []load) (bytes int) {
	for _, l := range key {
		bytes += l.bytes
	}
	return bytes
}
