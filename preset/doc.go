// Package preset contains settings for known providers, servers and models, as patches: sets of the keys that differ from the defaults.
//
// A [Patch] is sparse: a key that is not set retains the existing value, so that a preset never changes other documented defaults. [Merge]
// merges patches. [Named] returns a preset, [Profile] the settings of a provider or server, and [For] merges the defaults with the settings
// of the provider and the model.
//
//	patch, err := preset.For("openrouter", "deepseek/deepseek-chat")
//	…
//	patch = preset.Merge(patch, own)
//	chain, err := transform.New(patch.Transforms(), nil)
//	model = transform.Wrap(model, chain)
//
// Each preset and profile has exactly one name. A variant of a name is an error that contains the right name.
package preset
