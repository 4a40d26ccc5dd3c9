"""Parts of HTTP routes and console pages: who asks, how it is answered, what a page may use. For faces and features."""
