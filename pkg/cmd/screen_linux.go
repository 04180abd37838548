package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// What terminals do on these sequences (ECMA-48, and xterm's alternate screen).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, and no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	eraseLine   = "\x1b[K"
	eraseBelow  = "\x1b[J"
)

// screen is a terminal that shows some lines, as many as fit.
type screen struct {
	in, out *os.File
	before  *unix.Termios

	mu    sync.Mutex
	lines []string
	// closed: the terminal is somebody else's.
	closed bool
}

// openScreen clears the terminal, and has keys be read at once and not shown. Close the screen.
func openScreen(in, out *os.File) (*screen, error) {
	before, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if _, sizeErr := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ); err != nil || sizeErr != nil {
		return nil, errNoTerminal
	}
	now := *before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(in.Fd()), unix.TCSETS, &now); err != nil {
		return nil, fmt.Errorf("prepare the terminal: %w", err)
	}
	s := &screen{in: in, out: out, before: before}
	if _, err := out.WriteString(enterScreen); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close makes the terminal as it was.
func (s *screen) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	_, err := s.out.WriteString(leaveScreen)
	return errors.Join(err, unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, s.before))
}

// watch calls quit when somebody types q, and draws again when the terminal has another size, until ctx ends.
func (s *screen) watch(ctx context.Context, quit func()) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	go func() { // it ends with the process: a read of a terminal cannot be ended
		key := make([]byte, 1)
		for {
			if n, err := s.in.Read(key); n == 1 && (key[0] == 'q' || key[0] == 'Q') || err != nil {
				quit()
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-resized:
			if s.draw() != nil {
				quit()
			}
		}
	}
}

// show shows other lines.
func (s *screen) show(lines []string) error {
	s.mu.Lock()
	s.lines = lines
	s.mu.Unlock()
	return s.draw()
}

// draw writes the lines that fit, each cut to the width, in one write.
func (s *screen) draw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	size, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return fmt.Errorf("ask the terminal for its size: %w", err)
	}
	_, err = s.out.WriteString(frame(s.lines, int(size.Col), int(size.Row)))
	return err
}

// frame returns what makes a terminal show lines and nothing else. One that tells no size shows all of them.
func frame(lines []string, columns, rows int) string {
	if rows > 0 && len(lines) > rows {
		lines = lines[:rows]
	}
	var text strings.Builder
	text.WriteString(toTop)
	for i, line := range lines {
		if i > 0 {
			text.WriteString("\r\n")
		}
		if columns > 0 && utf8.RuneCountInString(line) > columns {
			line = string([]rune(line)[:columns])
		}
		text.WriteString(eraseLine + line) // afterwards it would erase the last column's
	}
	if rows == 0 || len(lines) < rows {
		text.WriteString("\r\n" + eraseBelow)
	}
	return text.String()
}
