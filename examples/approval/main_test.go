package main

func Example() {
	main()
	// Output:
	// call delete_file with {"name":"notes.txt"}? [y/N]
	// Done, or denied.
}
