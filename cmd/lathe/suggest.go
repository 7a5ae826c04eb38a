package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// maxSuggestions bounds the words that a message suggests.
const maxSuggestions = 3

// didYouMean returns "did you mean …?" with the names that are near word or begin with it, else otherwise.
func didYouMean(word string, names []string, otherwise string) string {
	// Cobra measures the distance between commands: so the names become some.
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range names {
		all.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	near := all.SuggestionsFor(word)
	if len(near) == 0 || word == "" {
		return otherwise
	}
	return "did you mean " + strings.Join(near[:min(len(near), maxSuggestions)], " or ") + "?"
}
