package nftables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// ErrNoTool is returned where the program nft is not installed.
var ErrNoTool = errors.New("nft is not installed (Debian package nftables)")

// Test lets nft check a payload without applying it.
func Test(ctx context.Context, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	command := exec.CommandContext(ctx, "nft", "--check", "--file", "-")
	command.Stdin = bytes.NewReader(payload)
	output, err := command.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoTool
	}
	if err != nil {
		return fmt.Errorf("nft --check: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
