// Command pod is the program of the pods on real nodes. Without arguments it waits to be ended, as the process that keeps
// a pod's namespaces does. With addresses as arguments it asks at each of them, as the first thing that it does, who it is
// seen as, and serves port 8080 (TCP): a client is told who it is seen as, and again for every line that it sends, but for
// two:
//
//	first          for each address, what the first flow to it was told and after how long, or "- -"
//	ask ADDRESS    what a new flow to ADDRESS is told, and after how long
package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// patience bounds a question: a SYN that is lost is sent again after 1, 3 and 7 seconds.
const patience = 15 * time.Second

func main() {
	if addresses := os.Args[1:]; len(addresses) > 0 {
		go serve(addresses)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}

func serve(addresses []string) {
	answers := make([]chan string, len(addresses))
	for i, address := range addresses {
		answers[i] = make(chan string, 1)
		go func() { answers[i] <- ask(address) }()
	}
	l, err := net.Listen("tcp", ":8080")
	if err != nil {
		log.Fatal(err)
	}
	first := make(chan string)
	go func() {
		var all []string
		for _, answer := range answers {
			all = append(all, <-answer)
		}
		for {
			first <- strings.Join(all, " ")
		}
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go answer(c, first)
	}
}

func answer(c net.Conn, first <-chan string) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	for again := true; again; again = lines.Scan() {
		reply := c.RemoteAddr().String()
		if address, ok := strings.CutPrefix(lines.Text(), "ask "); ok {
			reply = ask(address)
		} else if lines.Text() == "first" {
			reply = <-first
		}
		if _, err := fmt.Fprintln(c, reply); err != nil {
			return
		}
	}
}

// ask opens a new flow and returns what it is told, and after how long.
func ask(address string) string {
	began := time.Now()
	c, err := net.DialTimeout("tcp", address, patience)
	if err == nil {
		defer c.Close()
		_ = c.SetDeadline(began.Add(patience))
		var line string
		if line, err = bufio.NewReader(c).ReadString('\n'); err == nil {
			return strings.TrimSpace(line) + " " + time.Since(began).Round(time.Millisecond).String()
		}
	}
	log.Printf("ask %s: %v", address, err)
	return "- -"
}
