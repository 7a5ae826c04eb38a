// Package preset holds settings for known providers, servers and models, as patches: sets of the keys
// that differ from the defaults.
//
// A [Patch] is sparse: a key that is not set keeps the existing value, so that a preset never changes
// other documented defaults. [Merge] merges patches. [Named] returns a preset,
// [Profile] the settings of a provider or server, and [For] joins both with the settings of the model.
//
//	patch, err := preset.For("openrouter", "deepseek/deepseek-chat")
//	…
//	patch = preset.Merge(patch, own)
//	chain, err := transform.New(patch.Transforms(), nil)
//	model = transform.Wrap(model, chain)
//
// Each name has one spelling. An alias is an error that names the right one.
package preset
