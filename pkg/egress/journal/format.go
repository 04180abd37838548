package journal

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// magic begins a file, with the version of its form.
const magic = "origin-node-journal 1 "

// timeForm is that of RFC 3339 with milliseconds, in UTC.
const timeForm = "2006-01-02T15:04:05.000Z"

// none stands for a field that is empty.
const none = "-"

// sharedMark is in front of ports that pods share, secondMark in front of those that a pod has besides others.
const sharedMark, secondMark = '~', '+'

// header is the first line of a file.
type header struct {
	node string
	// from is the time from which on the file has everything; after is that of the file before, zero if there is none, and afterSize how many
	// bytes that one has. It is 0 in files of before 2026-12.
	from, after time.Time
	afterSize   int64
}

func (h header) appendTo(text []byte) []byte {
	text = append(append(append(text, magic...), h.node...), ' ')
	text = append(appendTime(text, h.from), ' ')
	if h.after.IsZero() {
		text = append(text, none...)
	} else {
		text = strconv.AppendInt(append(appendTime(text, h.after), ' '), h.afterSize, 10)
	}
	return append(text, '\n')
}

// parseHeader parses a first line.
func parseHeader(line []byte) (h header, err error) {
	rest, ours := bytes.CutPrefix(line, []byte(magic))
	fields := bytes.Split(rest, []byte{' '})
	if !ours || len(fields) < 3 || len(fields) > 4 || len(fields[0]) == 0 {
		return h, errors.New("it does not begin like a journal of version 1")
	}
	h.node = string(fields[0])
	if h.from, err = parseTime(fields[1]); err != nil {
		return h, err
	}
	if string(fields[2]) != none {
		h.after, err = parseTime(fields[2])
	}
	if err == nil && len(fields) == 4 {
		h.afterSize, err = strconv.ParseInt(string(fields[3]), 10, 64)
	}
	return h, err
}

// kind is what a line says.
type kind byte

const (
	assigned kind = '+'
	released kind = '-'
	alive    kind = 'a'
	gap      kind = 'g'
)

// line is one of a file. Its texts are parts of what was read.
type line struct {
	at   time.Time
	kind kind
	// ref is what assigned and released have in common.
	ref uint64
	// seen is that of released, if it is not known when that was, or the beginning of a gap.
	seen time.Time

	// These are of assigned.
	namespace, pod, uid, service []byte
	podIP, egressIP              netip.Addr
	ports                        kernel.Ports
	shared, second               bool
}

// assignment returns what an assigned line says.
func (l line) assignment(node string) portblocks.Assignment {
	namespace := string(l.namespace)
	service := string(l.service)
	switch {
	case service == none:
		service = ""
	case !strings.Contains(service, "/"):
		service = namespace + "/" + service
	}
	return portblocks.Assignment{
		Pod: portblocks.Pod{Namespace: namespace, Name: string(l.pod), UID: string(l.uid), IP: l.podIP}, Service: service,
		EgressIP: l.egressIP, Ports: l.ports, Shared: l.shared, Second: l.second, Node: node, Since: l.at,
	}
}

// validate returns why an assignment cannot be written: a line has one word for each thing.
func validate(a portblocks.Assignment) error {
	for name, word := range map[string]string{"the pod's namespace": a.Pod.Namespace, "the pod's name": a.Pod.Name, "the pod's UID": a.Pod.UID, "the Service": orNone(a.Service)} {
		if word == "" || len(word) > longestWord || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || !unicode.IsPrint(r) }) {
			return fmt.Errorf("%s is %.100q, which cannot be written into a journal", name, word)
		}
	}
	switch {
	case strings.Contains(a.Pod.Namespace, "/") || strings.Contains(a.Pod.Name, "/") || strings.Count(a.Service, "/") > 1:
		return fmt.Errorf("the pod %.100q, %.100q, and the Service %.100q cannot be written into a journal", a.Pod.Namespace, a.Pod.Name, a.Service)
	case !plain(a.Pod.IP) || !plain(a.EgressIP):
		return fmt.Errorf("the pod %s/%s has the address %v and the egress IP %v, which cannot be written into a journal", a.Pod.Namespace, a.Pod.Name, a.Pod.IP, a.EgressIP)
	case a.Ports.First > a.Ports.Last || a.Ports.First == 0:
		return fmt.Errorf("the pod %s/%s has the ports %v, which cannot be written into a journal", a.Pod.Namespace, a.Pod.Name, a.Ports)
	case a.Since.Year() < 1970 || a.Since.Year() > 9999:
		return fmt.Errorf("the pod %s/%s has ports since %v, which cannot be written into a journal", a.Pod.Namespace, a.Pod.Name, a.Since)
	}
	return nil
}

// longestWord is how long a name may be: Kubernetes allows 253 bytes.
const longestWord = 512

func plain(ip netip.Addr) bool { return ip.IsValid() && !ip.Is4In6() && ip.Zone() == "" }

func orNone(word string) string {
	if word == "" {
		return none
	}
	return word
}

// appendAssigned appends the line of a valid assignment.
func appendAssigned(text []byte, ref uint64, a portblocks.Assignment) []byte {
	text = append(appendTime(text, a.Since), " + "...)
	text = append(strconv.AppendUint(text, ref, 36), ' ')
	service := strings.TrimPrefix(a.Service, a.Pod.Namespace+"/")
	for _, part := range []string{a.Pod.Namespace, "/", a.Pod.Name, " ", a.Pod.UID, " "} {
		text = append(text, part...)
	}
	text = append(a.Pod.IP.AppendTo(text), ' ')
	text = append(append(text, orNone(service)...), ' ')
	text = append(a.EgressIP.AppendTo(text), ' ')
	if a.Shared {
		text = append(text, sharedMark)
	}
	if a.Second {
		text = append(text, secondMark)
	}
	text = append(strconv.AppendUint(text, uint64(a.Ports.First), 10), '-')
	return append(strconv.AppendUint(text, uint64(a.Ports.Last), 10), '\n')
}

// appendReleased appends the line of an end. A time of zero as seen says that it is known when that was.
func appendReleased(text []byte, at time.Time, ref uint64, seen time.Time) []byte {
	text = strconv.AppendUint(append(appendTime(text, at), " - "...), ref, 36)
	if !seen.IsZero() {
		text = appendTime(append(text, ' '), seen)
	}
	return append(text, '\n')
}

func appendAlive(text []byte, at time.Time) []byte {
	return append(appendTime(text, at), " alive\n"...)
}

func appendGap(text []byte, at, since time.Time) []byte {
	return append(appendTime(append(appendTime(text, at), " gap "...), since), '\n')
}

func appendTime(text []byte, at time.Time) []byte { return at.UTC().AppendFormat(text, timeForm) }

// timeText returns a time as it is in a line.
func timeText(at time.Time) string { return string(appendTime(nil, at)) }

// precise returns a time as it is written.
func precise(at time.Time) time.Time { return at.UTC().Truncate(time.Millisecond) }

// parseTime parses a time of a line by hand: there is one in each line, and there are millions.
func parseTime(text []byte) (time.Time, error) {
	wrong := len(text) != len(timeForm)
	number := func(from, to int) (n int) {
		for _, digit := range text[from:to] {
			wrong = wrong || digit < '0' || digit > '9'
			n = 10*n + int(digit-'0')
		}
		return n
	}
	if !wrong {
		year, month, day := number(0, 4), number(5, 7), number(8, 10)
		hour, minute, second, milli := number(11, 13), number(14, 16), number(17, 19), number(20, 23)
		t := time.Date(year, time.Month(month), day, hour, minute, second, milli*int(time.Millisecond), time.UTC)
		marks := [...]byte{text[4], text[7], text[10], text[13], text[16], text[19], text[23]}
		// A day that does not exist would be another one.
		if !wrong && marks == [...]byte{'-', '-', 'T', ':', ':', '.', 'Z'} && t.Day() == day && month >= 1 && month <= 12 && hour < 24 && minute < 60 && second < 60 {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.100q is not a time such as %s", text, timeForm)
}

// parseLine parses a line but the first one, without its end.
func parseLine(text []byte) (l line, err error) {
	if len(text) < len(timeForm)+2 || text[len(timeForm)] != ' ' {
		return l, errors.New("it does not begin with a time")
	}
	if l.at, err = parseTime(text[:len(timeForm)]); err != nil {
		return l, err
	}
	word, rest, _ := bytes.Cut(text[len(timeForm)+1:], []byte{' '})
	switch string(word) {
	case "+":
		l.kind = assigned
		err = l.parseAssigned(rest)
	case "-":
		l.kind = released
		ref, seen, unknown := bytes.Cut(rest, []byte{' '})
		if l.ref, err = parseRef(ref); err == nil && unknown {
			l.seen, err = parseTime(seen)
		}
	case "alive":
		if l.kind = alive; len(rest) > 0 {
			err = errors.New("there is more than alive")
		}
	case "gap":
		l.kind = gap
		l.seen, err = parseTime(rest)
	default:
		err = fmt.Errorf("%.100q is none of +, -, alive and gap", word)
	}
	return l, err
}

func parseRef(text []byte) (uint64, error) {
	if len(text) == 0 || len(text) > 12 {
		return 0, fmt.Errorf("%.100q is no reference", text)
	}
	return strconv.ParseUint(string(text), 36, 64)
}

// parseAssigned parses what comes after +.
func (l *line) parseAssigned(text []byte) (err error) {
	var fields [7][]byte
	for i := range fields {
		var more bool
		fields[i], text, more = bytes.Cut(text, []byte{' '})
		if len(fields[i]) == 0 || more == (i == len(fields)-1) {
			return errors.New("it has not seven words after +")
		}
	}
	if l.ref, err = parseRef(fields[0]); err != nil {
		return err
	}
	var named bool
	if l.namespace, l.pod, named = bytes.Cut(fields[1], []byte{'/'}); !named {
		return fmt.Errorf("%.100q is not NAMESPACE/POD", fields[1])
	}
	l.uid, l.service = fields[2], fields[4]
	if l.podIP, err = netip.ParseAddr(string(fields[3])); err != nil {
		return err
	}
	if l.egressIP, err = netip.ParseAddr(string(fields[5])); err != nil {
		return err
	}
	ports := fields[6]
	if l.shared, l.second = ports[0] == sharedMark, ports[0] == secondMark; l.shared || l.second {
		ports = ports[1:]
	}
	l.ports, err = parsePorts(ports)
	return err
}

func parsePorts(text []byte) (kernel.Ports, error) {
	first, last, _ := bytes.Cut(text, []byte{'-'})
	from, wrong := parsePort(first)
	to, alsoWrong := parsePort(last)
	if wrong || alsoWrong || from > to {
		return kernel.Ports{}, fmt.Errorf("%.100q are no ports", text)
	}
	return kernel.Ports{First: from, Last: to}, nil
}

// parsePort parses a port by hand: there is one in each line.
func parsePort(text []byte) (port uint16, wrong bool) {
	n := 0
	for _, digit := range text {
		if digit < '0' || digit > '9' || n > 65535 {
			return 0, true
		}
		n = 10*n + int(digit-'0')
	}
	return uint16(n), len(text) == 0 || n == 0 || n > 65535
}
