/* Licences of the libraries in this file: NOTICE.txt */
import{a,b}from"./chunk-JCPEKQHI.js";import"./chunk-ABUV7RCE.js";import"./chunk-2BROTDO6.js";import"./chunk-PM66Z6BF.js";export{b as default,a as verdict};
