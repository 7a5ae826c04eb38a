package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"
)

func keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make keys for the callers of a gateway",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(keysNewCommand())
	return cmd
}

// keyPrefix is the prefix of the keys that this command creates, so that secret scanners can find them.
const keyPrefix = "lathe_"

// newKey returns a random key of 256 bits and its SHA-256 in hex.
func newKey() (key, hash string) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	sum := sha256.Sum256([]byte(key))
	return key, hex.EncodeToString(sum[:])
}

func keysNewCommand() *cobra.Command {
	var f struct {
		JSON bool `flag:"json" usage:"print JSON"`
	}
	return withFlags(&cobra.Command{
		Use:   "new",
		Short: "Print a new random key, and its SHA-256 for the configuration",
		Long: `Prints a random key once, and its SHA-256 for keys.NAME.sha256 in lathe.yaml. Nothing is stored: give the key to
its holder now. The configuration with the hash is no secret.`,
		Example: "  lathe keys new\n  lathe keys new --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, hash := newKey()
			if f.JSON {
				return writeLines(cmd, struct {
					Key    string `json:"key"`
					SHA256 string `json:"sha256"`
				}{key, hash})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "key:    %s\nsha256: %s\n", key, hash)
			return err
		},
	}, &f)
}
