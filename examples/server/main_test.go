package main

func Example() {
	main()
	// Output: 200 OK true
}
