/* Licences of the libraries in this file: NOTICE.txt */
import{l as a,m as b,n as c,o as d}from"./chunk-WKN7PMLY.js";import"./chunk-NQ4VEZ3U.js";import"./chunk-PASQL4IF.js";import"./chunk-4AUKJGMT.js";import"./chunk-OOJM4CTU.js";export{c as Measure,b as NoResults,d as default,a as outcome};
