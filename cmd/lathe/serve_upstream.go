package main

import (
	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/config"
)

// overrides returns the settings for --base-url and --model: a model entry and the default model. They also apply after a reload.
func (f *serveFlags) overrides(cmd *cobra.Command) ([]config.Override, error) {
	if f.BaseURL == "" && f.Model != "" {
		return nil, usageError("--model goes with --base-url: a configured model is chosen by default_model in lathe.yaml, or by each request")
	}
	over, name, err := (&runFlags{modelFlags: modelFlags{upstreamFlags: f.upstreamFlags}}).overrides(cmd)
	if err == nil && name != "" {
		over = append(over, config.Override{From: "--base-url", Key: "default_model", Value: name})
	}
	return over, err
}

// loadConfig reads the configuration of the gateway and applies the flags.
func (f *serveFlags) loadConfig(cmd *cobra.Command, file string) (*config.Config, error) {
	over, err := f.overrides(cmd)
	if err != nil {
		return nil, err
	}
	cfg, err := loadConfig(file, over)
	if err != nil {
		return nil, err
	}
	if f.BaseURL != "" && cfg.Models[f.Model] != nil {
		return nil, usageError("--model %s: lathe.yaml has a model of this name", f.Model)
	}
	return cfg, nil
}

// aliases returns the name that clients use for the model of --base-url.
func (f *serveFlags) aliases() map[string]string {
	if f.BaseURL == "" {
		return nil
	}
	return map[string]string{commandLineModel: f.Model}
}
