/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-M2LI2EVV.js";import"./chunk-I5JZN7FM.js";import"./chunk-OL5XJZGW.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
