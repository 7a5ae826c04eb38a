package digest

import (
	"math"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Defaults of phv1 for options that are not set.
const (
	DefaultTemperature = 0.7
	DefaultMaxTokens   = 2048
)

// appendTail1 appends the part of the phv1 text that follows the messages.
func appendTail1(b []byte, s *lathe.Sampling) []byte {
	temperature, maxTokens := DefaultTemperature, DefaultMaxTokens
	if s.Temperature != nil {
		temperature = *s.Temperature
	}
	if s.MaxTokens != nil {
		maxTokens = *s.MaxTokens
	}
	b = appendFloat(append(b, `],"temperature":`...), temperature)
	b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(maxTokens), 10)
	return append(b, '}')
}

// appendSampling appends the members of the options that are set.
func appendSampling(b []byte, s *lathe.Sampling) []byte {
	start := len(b)
	member := func(name string) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, name...)
		b = append(b, '"', ':')
	}
	if s.Temperature != nil {
		member("temperature")
		b = appendFloat(b, *s.Temperature)
	}
	if s.TopP != nil {
		member("top_p")
		b = appendFloat(b, *s.TopP)
	}
	if s.MaxTokens != nil {
		member("max_tokens")
		b = strconv.AppendInt(b, int64(*s.MaxTokens), 10)
	}
	if s.Seed != nil {
		member("seed")
		b = strconv.AppendInt(b, *s.Seed, 10)
	}
	if len(s.Stop) > 0 {
		member("stop")
		b = append(b, '[')
		for i, stop := range s.Stop {
			if i > 0 {
				b = append(b, ',')
			}
			b = rawjson.AppendQuote(b, stop)
		}
		b = append(b, ']')
	}
	if s.ReasoningEffort != "" {
		member("reasoning_effort")
		b = rawjson.AppendQuote(b, s.ReasoningEffort)
	}
	if len(s.ResponseFormat) > 0 {
		member("response_format")
		b = appendValue(b, s.ResponseFormat)
	}
	return b
}

// appendFloat appends f as JSON.stringify writes it. Infinities and NaN become null.
func appendFloat(b []byte, f float64) []byte {
	if f == 0 || 1e-6 <= f && f < 1e21 { // written without an exponent; -0 is written as 0
		return strconv.AppendFloat(b, math.Abs(f), 'f', -1, 64)
	}
	var buf [32]byte
	out, err := rawjson.AppendCanonical(b, strconv.AppendFloat(buf[:0], f, 'e', -1, 64))
	if err != nil {
		return append(b, "null"...)
	}
	return out
}
