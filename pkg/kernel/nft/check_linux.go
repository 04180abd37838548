package nft

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// ErrNoTool is returned where the program nft is not installed.
var ErrNoTool = errors.New("nft is not installed (Debian package nftables)")

// checkTime is how long nft may take to check a table.
const checkTime = 30 * time.Second

// Check lets nft check a table ([Spec.Text]) without applying it, as in a kernel that does not have it:
// sets that a [Writer] has made are not in all that they say of themselves those of nft.
func Check(ctx context.Context, payload []byte) error {
	if len(payload) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	command := exec.CommandContext(ctx, "nft", "--check", "--file", "-")
	table, _, _ := bytes.Cut(payload, []byte(" {\n"))
	command.Stdin = io.MultiReader(strings.NewReader(fmt.Sprintf("%s\ndelete %s\n", table, table)), bytes.NewReader(payload))
	output, err := command.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoTool
	}
	if err != nil {
		return fmt.Errorf("nft --check: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
