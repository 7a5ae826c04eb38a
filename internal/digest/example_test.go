package digest_test

import (
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
)

func ExampleArgsPreview() {
	fmt.Println(digest.ArgsPreview([]byte(`{"b":1,"a":2}`), digest.Compat, nil))
	fmt.Println(digest.ArgsPreview([]byte(`{ "a": 2, "b": 1 }`), digest.Compat, nil))
	// Output:
	// 21501dbaf73f5223934d22283f01caff
	// 21501dbaf73f5223934d22283f01caff
}

func ExamplePrompt() {
	p := digest.NewPrompt("gpt-4o-mini")
	p.Add(lathe.User("Hello"))
	phv1, _ := p.Sum(nil, digest.NoTools, lathe.ToolChoice{})
	fmt.Println(phv1)
	// Output: ba973fa4cbaa090fbe16ea7a545f98c7e596aa363f062ad641697b73a6585f71
}
