package main

func Example() {
	main()
	// Output:
	// "Let me look." weather {"city": "Oslo"}
	// "Let me look. " weather {"city": "Oslo"}
}
