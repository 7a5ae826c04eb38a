package main

func Example() {
	main()
	// Output:
	// sums__calculator from mcp:sums
	// 7 + 35 = 42.
}
