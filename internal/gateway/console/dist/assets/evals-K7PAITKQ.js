/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-L4QUAP22.js";import"./chunk-UUS5PYVQ.js";import"./chunk-PASQL4IF.js";import"./chunk-4AUKJGMT.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
