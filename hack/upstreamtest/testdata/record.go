package testing

import (
	"fmt"
	"os"
)

// Record appends a heading and what it is about to the file that the environment names.
func Record(heading, content string) {
	name := os.Getenv("UPSTREAMTEST_RECORD")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "=== %s\n%s", heading, content); err != nil {
		panic(err)
	}
}
